# SPDX-License-Identifier: Apache-2.0
# Headers, licence, and the package that find_package(skein COMPONENTS mpi) reads. The package finds third parties anew.
include(CMakePackageConfigHelpers)
set(skein_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/skein")

install(TARGETS skein FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
configure_package_config_file(cmake/skeinConfig.cmake.in "${PROJECT_BINARY_DIR}/skeinConfig.cmake"
  INSTALL_DESTINATION "${skein_package_dir}" PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${PROJECT_BINARY_DIR}/skeinConfig.cmake" "${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake"
  cmake/SkeinThirdParty.cmake cmake/FindSkeinOneDNN.cmake cmake/FindSkeinNCCL.cmake
  cmake/FindSkeinCuDNN.cmake cmake/FindSkeinCudaLibraries.cmake DESTINATION "${skein_package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/skein")
