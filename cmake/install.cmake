# The library as others find it: shared and static, with the header, a CMake package and a pkg-config file; and packages.
include(CMakePackageConfigHelpers)

install(TARGETS gpuconv_shared EXPORT gpuconv_shared)
set(static gpuconv_core)
if(GPUCONV_WITH_CUDA)
    list(APPEND static gpuconv_kernels)
    target_link_libraries(gpuconv_core PRIVATE $<INSTALL_INTERFACE:stdc++>) # of what nvcc makes
    set(GPUCONV_PC_CUDA " -lgpuconv_kernels -lcudart_static -lrt -lstdc++")
endif()
install(TARGETS ${static} EXPORT gpuconv_static)
install(FILES include/gpuconv.h TYPE INCLUDE)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/gpuconv)
install(EXPORT gpuconv_shared NAMESPACE gpuconv:: FILE gpuconv-shared.cmake DESTINATION ${package})
install(EXPORT gpuconv_static NAMESPACE gpuconv:: FILE gpuconv-static.cmake DESTINATION ${package})
configure_package_config_file(cmake/gpuconv-config.cmake.in gpuconv-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(gpuconv-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpuconv-config.cmake ${PROJECT_BINARY_DIR}/gpuconv-config-version.cmake
        DESTINATION ${package})

# Where the prefix lies, seen from the file: so that an installation can be moved.
file(RELATIVE_PATH GPUCONV_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
if(MYSOFA_FOUND)
    set(GPUCONV_PC_SOFA " libmysofa")
endif()
configure_file(cmake/gpuconv.pc.in gpuconv.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gpuconv.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The documents keep their places relative to each other, so that their links hold.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png" PATTERN "*.json")
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.c")
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
