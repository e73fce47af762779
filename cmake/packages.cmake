# Packages: one archive of everything, and one .deb for each component, so that a program that plays reverb does not install
# Open MPI.
set(CPACK_PACKAGE_NAME gpuconv)
set(CPACK_PACKAGE_CONTACT "the authors of gpuconv <gpuconv@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION sound)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
# Adds what Debian expects of every package: copyright and changelog.
set(GPUCONV_PACKAGES)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/debian-files.cmake)

# add_package(component name summary text [section]): the Debian package of a component. CPack takes the first line of a
# description as its summary only while CPACK_PACKAGE_DESCRIPTION_SUMMARY is CPack's default.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_NAME} built using CMake")
function(add_package component name summary text)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    if(ARGC GREATER 4)
        set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${ARGV4} PARENT_SCOPE)
    endif()
    set(GPUCONV_PACKAGES ${GPUCONV_PACKAGES} ${component}=${name} PARENT_SCOPE)
    set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

set(library libgpuconv${GPUCONV_ABI})
add_package(command gpuconv "convolve audio files with impulse responses"
    "The command gpuconv with its manual, completions and documents, and\nten impulse responses.")
add_package(library ${library} "convolution of audio with impulse responses, shared library"
    "The shared library, for programs that are linked with it." libs)
add_package(development libgpuconv-dev "convolution of audio with impulse responses, development files"
    "The header, the static library, the CMake package, the pkg-config\nfile and examples." libdevel)
if(TARGET gpuconv_cuda)
    add_package(cuda gpuconv-cuda "gpuconv on NVIDIA GPUs"
        "The module that libgpuconv loads to convolve on GPUs from Turing on.\nIt needs NVIDIA's driver and nothing else." libs)
endif()
add_package(lab gpulab "kernels of CUDA courses, explained and measured"
    "The command gpulab, the sources of its kernels, and a record of an\nNVIDIA H200." education)
if(TARGET gpuconv_lv2)
    add_package(plugin gpuconv-lv2 "convolution reverb as an LV2 plug-in"
        "The plug-in: stereo, true stereo, mono to stereo, and sounds in space.")
endif()
if(TARGET gpuconv_sound OR TARGET gpuconv_pipewire OR TARGET gpuconv_osc OR TARGET gpuconv_midi)
    add_package(sound gpuconv-sound "gpuconv play, live and ir measure --play"
        "The modules of gpuconv that need PortAudio, PipeWire, liblo and JACK:\nsound devices, remote control, head trackers.")
endif()
if(TARGET gpuconv_mpi)
    add_package(mpi gpuconv-mpi "gpuconv batch over several machines"
        "The module of gpuconv that needs MPI.")
endif()
if(TARGET gpuconv_media)
    add_package(media gpuconv-media "M4A, AAC, WMA and others for gpuconv"
        "The module of gpuconv that needs libavformat.")
endif()
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS "gpuconv-sound")
set(CPACK_DEBIAN_PLUGIN_PACKAGE_SUGGESTS "gpuconv-sound")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "gnuplot-nox, gpuconv-media, gpuconv-mpi, gpuconv-lv2")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${library} (= ${PROJECT_VERSION}), libsndfile1-dev, libsoxr-dev, libebur128-dev, libjansson-dev, libqhull-dev")
# What depends on the library by its SONAME, and the call of ldconfig.
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs "libgpuconv ${GPUCONV_ABI} ${library} (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PLUGIN_PACKAGE_SUGGESTS "jalv")
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "gpuconv (= ${PROJECT_VERSION}), openmpi-bin")
set(CPACK_DEBIAN_SOUND_PACKAGE_DEPENDS "gpuconv (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_MEDIA_PACKAGE_DEPENDS "gpuconv (= ${PROJECT_VERSION})")
configure_file(cmake/debian-files.cmake.in debian-files.cmake @ONLY)
include(CPack)
