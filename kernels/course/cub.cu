/* The sums, scans and histograms of the library CUB, which the variants of modules reduction, scan and histogram are
 * compared with. One file, because the headers of CUB take most of the time of compiling it. */
#include "course.cuh"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

using namespace course;

namespace {

enum { VALUES = 256 }; /* of a byte */

} // namespace

LAB_LAUNCHER(gck_reduction_cub) {
    size_t bytes = (size_t)run->scratch_bytes;
    return cub::DeviceReduce::Sum(run->scratch, bytes, buffer<const float>(run, 0), buffer<float>(run, 1), run->size[0],
                                  stream(run));
}

LAB_LAUNCHER(gck_scan_cub) {
    size_t bytes = (size_t)run->scratch_bytes;
    return cub::DeviceScan::InclusiveSum(run->scratch, bytes, buffer<const int>(run, 0), buffer<int>(run, 1),
                                         (int)run->size[0], stream(run));
}

LAB_LAUNCHER(gck_histogram_cub) {
    size_t bytes = (size_t)run->scratch_bytes;
    return cub::DeviceHistogram::HistogramEven(run->scratch, bytes, buffer<const unsigned char>(run, 0),
                                               buffer<int>(run, 1), VALUES + 1, 0, (int)VALUES, (int)run->size[0],
                                               stream(run));
}
