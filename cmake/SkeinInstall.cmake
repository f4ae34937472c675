# SPDX-License-Identifier: Apache-2.0
# Headers, licence, with SKEIN_COMPILED the library, and the package that find_package(skein COMPONENTS mpi) reads. The package finds third parties anew.
include(CMakePackageConfigHelpers)
set(skein_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/skein")

install(TARGETS skein FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(skein_libraries "")
set(skein_any_architecture ARCH_INDEPENDENT)
if(SKEIN_COMPILED)
  set(skein_libraries "${CMAKE_INSTALL_LIBDIR}/${CMAKE_STATIC_LIBRARY_PREFIX}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(skein_libraries "\${PACKAGE_PREFIX_DIR}/${skein_libraries}")
  endif()
  set(skein_any_architecture "")
endif()
configure_package_config_file(cmake/skeinConfig.cmake.in "${PROJECT_BINARY_DIR}/skeinConfig.cmake"
  INSTALL_DESTINATION "${skein_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ${skein_any_architecture})
install(FILES "${PROJECT_BINARY_DIR}/skeinConfig.cmake" "${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake"
  cmake/SkeinThirdParty.cmake cmake/SkeinCompiled.cmake cmake/FindSkeinOneDNN.cmake cmake/FindSkeinNCCL.cmake
  cmake/FindSkeinCuDNN.cmake cmake/FindSkeinCudaLibraries.cmake DESTINATION "${skein_package_dir}")
if(SKEIN_COMPILED)
  install(TARGETS skein_compiled ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  if(TARGET skein_compiled_mpi)
    install(TARGETS skein_compiled_mpi ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/skein")
