# Hardening of programs and libraries where the compiler and the linker support it: position-independent executables,
# read-only relocations bound at start, stack protector, stack-clash protection, checked variants of libc's functions.
# tests/hardening.sh reads the result from the binaries. Builds with sanitizers, which check more, are not hardened.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)

check_pie_supported(LANGUAGES C)
if(NOT GPUCONV_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(GPUCONV_HARDENED ON)
    foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection)
        string(MAKE_C_IDENTIFIER "GPUCONV_HAS${flag}" has)
        check_c_compiler_flag(${flag} ${has})
        if(${has})
            target_compile_options(gpuconv_options INTERFACE $<$<COMPILE_LANGUAGE:C>:${flag}>)
        endif()
    endforeach()
    # Distributions may define the macro already; a second value would be a warning.
    target_compile_options(gpuconv_options INTERFACE "$<$<COMPILE_LANGUAGE:C>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3>")
    foreach(flag relro now noexecstack)
        check_linker_flag(C "LINKER:-z,${flag}" GPUCONV_HAS_LINKER_${flag})
        if(GPUCONV_HAS_LINKER_${flag})
            target_link_options(gpuconv_options INTERFACE LINKER:-z,${flag})
        endif()
    endforeach()
endif()
