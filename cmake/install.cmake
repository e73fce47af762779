# Installs the library (shared, static, header, CMake package, pkg-config file), the documents and the lab's sources. Each
# rule names its component, which cmake/packages.cmake makes a package of.
include(CMakePackageConfigHelpers)

install(TARGETS gpuconv_shared EXPORT gpuconv_shared
        LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS gpuconv_core EXPORT gpuconv_static COMPONENT development)
if(GPUCONV_WITH_CUDA)
    install(TARGETS gpuconv_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpuconv COMPONENT cuda)
endif()
install(FILES include/gpuconv.h include/gpuconv_arrays.h include/gpuconv_rooms.h TYPE INCLUDE COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gpuconv)
install(EXPORT gpuconv_shared NAMESPACE gpuconv:: FILE gpuconv-shared.cmake DESTINATION ${package} COMPONENT development)
install(EXPORT gpuconv_static NAMESPACE gpuconv:: FILE gpuconv-static.cmake DESTINATION ${package} COMPONENT development)
write_basic_package_version_file(gpuconv-config-version.cmake COMPATIBILITY ${GPUCONV_COMPATIBILITY})
install(FILES ${PROJECT_BINARY_DIR}/gpuconv-config.cmake ${PROJECT_BINARY_DIR}/gpuconv-config-version.cmake
        DESTINATION ${package} COMPONENT development)

# Where the prefix lies, seen from the file: so that an installation can be moved.
file(RELATIVE_PATH GPUCONV_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
# What the static library needs is linked shared: Requires.private would also ask for the static libraries behind it, which
# Debian's packages do not depend on.
set(libraries)
set(GPUCONV_CONFIG_MODULES "")
if(GPUCONV_USED)
    set(GPUCONV_CONFIG_MODULES "    find_dependency(PkgConfig)\n")
endif()
if(GPUCONV_QHULL_FOUND) # the only one whose static library has another name
    pkg_check_modules(GPUCONV_QHULL_STATIC QUIET qhullstatic_r)
    if(GPUCONV_QHULL_STATIC_FOUND)
        set(GPUCONV_QHULL_LIBRARIES qhullstatic_r)
        set(GPUCONV_QHULL_MODULE_NAME qhullstatic_r)
    endif()
endif()
foreach(name IN LISTS GPUCONV_USED)
    list(APPEND libraries ${GPUCONV_${name}_LIBRARIES})
    string(APPEND GPUCONV_CONFIG_MODULES "    pkg_check_modules(GPUCONV_${name} REQUIRED IMPORTED_TARGET ${GPUCONV_${name}_MODULE_NAME})\n")
endforeach()
configure_package_config_file(cmake/gpuconv-config.cmake.in gpuconv-config.cmake INSTALL_DESTINATION ${package})
list(TRANSFORM libraries PREPEND "-l")
list(JOIN libraries " " GPUCONV_PC_LIBS)
configure_file(cmake/gpuconv.pc.in gpuconv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpuconv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(GPUCONV_LIBRARY_ONLY)
    return()
endif()

# The documents keep their places relative to each other, so that their links hold.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(FILES python/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/python COMPONENT command)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT command
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.json")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development FILES_MATCHING PATTERN "*.c" PATTERN "*.py")
install(FILES docs/report.schema.json DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv COMPONENT command)
install(DIRECTORY impulses/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/impulses COMPONENT command FILES_MATCHING PATTERN "*.flac" PATTERN "MANIFEST")

# What `gpulab show` names, at the same paths below one folder as in a checkout (find_sources in src/gpulab/pages/text.c).
install(DIRECTORY kernels/course kernels/device DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/lab/kernels COMPONENT lab
        FILES_MATCHING PATTERN "*.c" PATTERN "*.cu" PATTERN "*.cuh" PATTERN "*.h" PATTERN "*.def")
install(FILES kernels/measure/peak_rates.cu DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/lab/kernels/measure COMPONENT lab)
install(FILES src/gpulab/lab.h DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/lab/src/gpulab COMPONENT lab)
install(DIRECTORY tests/gpu/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/lab/tests/gpu COMPONENT lab FILES_MATCHING PATTERN "*-lab.json")

include(cmake/packages.cmake)
