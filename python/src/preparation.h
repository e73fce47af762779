// A preparation of a response from a dictionary of Python.
#ifndef GPUCONV_PYTHON_PREPARATION_H
#define GPUCONV_PYTHON_PREPARATION_H

#include "common.h"

#include <limits>

using dictionary = nb::typed<nb::dict, nb::str, nb::any>;
using text = std::optional<std::string>;

inline const char *c_str(const text &t) {
    return t ? t->c_str() : nullptr;
}

// The steps of a preparation as Python passes them: a dictionary of numbers, with a list of paths for "series".
struct preparation {
    gpuconv_preparation steps = gpuconv_preparation_default();
    std::vector<std::string> paths;
    std::vector<const char *> series;
    text direction, speakers;
    explicit preparation(const dictionary &given) {
        auto number = [&](const char *name, double other) {
            return given.contains(name) ? nb::cast<double>(given[name]) : other;
        };
        steps.layout = (gpuconv_layout)(int)number("layout", 0);
        steps.start = number("start", 0);
        steps.length = number("length", 0);
        steps.trim = number("trim", 0);
        steps.align = (gpuconv_align)(int)number("align", 0);
        steps.reverse = number("reverse", 0) != 0;
        steps.stretch = number("stretch", 0);
        steps.minimum_phase = number("minimum_phase", 0) != 0;
        steps.fade = number("fade", 0);
        steps.predelay = number("predelay", 0);
        steps.normalize = (gpuconv_normalize)(int)number("normalize", 0);
        steps.gain = number("gain", 0);
        steps.wet = number("wet", 0);
        steps.dry = number("dry", -std::numeric_limits<double>::infinity());
        if (given.contains("series"))
            paths = nb::cast<std::vector<std::string>>(given["series"]);
        for (const std::string &path : paths)
            series.push_back(path.c_str());
        steps.series = series.data();
        steps.series_count = (int)series.size();
        direction = string_of(given, "direction");
        speakers = string_of(given, "speakers");
        steps.direction = c_str(direction);
        steps.speakers = c_str(speakers);
        steps.yaw = number("yaw", 0);
        steps.pitch = number("pitch", 0);
        steps.roll = number("roll", 0);
        steps.interpolate = (gpuconv_interpolate)(int)number("interpolate", 0);
        steps.by_distance = number("by_distance", 0) != 0;
        steps.decode = (gpuconv_decode)(int)number("decode", 0);
        steps.diffuse_eq = number("diffuse_eq", 0) != 0;
    }
    static text string_of(const dictionary &given, const char *name) {
        return given.contains(name) ? nb::cast<text>(given[name]) : text();
    }
};

#endif
