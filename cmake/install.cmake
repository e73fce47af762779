# The library as others find it: shared and static, with the header, a CMake package and a pkg-config file; and packages.
include(CMakePackageConfigHelpers)

add_library(gpuconv_shared SHARED $<TARGET_OBJECTS:gpuconv_core> ${GPUCONV_SIMD_OBJECTS})
target_link_libraries(gpuconv_shared PRIVATE gpuconv_options Threads::Threads m ${CMAKE_DL_LIBS} PkgConfig::SNDFILE
                                             PkgConfig::SOXR PkgConfig::EBUR128 PkgConfig::JANSSON)
if(GPUCONV_WITH_CUDA)
    target_link_libraries(gpuconv_shared PRIVATE gpuconv_kernels CUDA::cudart_static)
endif()
target_include_directories(gpuconv_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                                                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
set(map ${PROJECT_SOURCE_DIR}/cmake/gpuconv.map)
target_link_options(gpuconv_shared PRIVATE LINKER:--version-script=${map})
set_target_properties(gpuconv_shared PROPERTIES OUTPUT_NAME gpuconv EXPORT_NAME gpuconv LINK_DEPENDS ${map}
                                                VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
set_target_properties(gpuconv_core PROPERTIES OUTPUT_NAME gpuconv EXPORT_NAME static)

install(TARGETS gpuconv_shared EXPORT gpuconv_shared)
set(static gpuconv_core)
if(GPUCONV_WITH_CUDA)
    list(APPEND static gpuconv_kernels)
    target_link_libraries(gpuconv_core PRIVATE $<INSTALL_INTERFACE:stdc++>) # of what nvcc makes
    set(GPUCONV_PC_CUDA " -lgpuconv_kernels -lcudart_static -lrt -lstdc++")
endif()
install(TARGETS ${static} EXPORT gpuconv_static)
install(FILES src/gpuconv.h TYPE INCLUDE)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gpuconv)
install(EXPORT gpuconv_shared NAMESPACE gpuconv:: FILE gpuconv-shared.cmake DESTINATION ${package})
install(EXPORT gpuconv_static NAMESPACE gpuconv:: FILE gpuconv-static.cmake DESTINATION ${package})
configure_package_config_file(cmake/gpuconv-config.cmake.in gpuconv-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(gpuconv-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpuconv-config.cmake ${PROJECT_BINARY_DIR}/gpuconv-config-version.cmake
        DESTINATION ${package})

# Where the prefix lies, seen from the file: so that an installation can be moved.
file(RELATIVE_PATH GPUCONV_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/gpuconv.pc.in gpuconv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpuconv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY impulses/ DESTINATION ${CMAKE_INSTALL_DATADIR}/gpuconv/impulses FILES_MATCHING PATTERN "*.flac" PATTERN "MANIFEST")

set(CPACK_PACKAGE_NAME gpuconv)
set(CPACK_PACKAGE_CONTACT "the authors of gpuconv <gpuconv@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION sound)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, jalv, openmpi-bin")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
