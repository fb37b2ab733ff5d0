# What `cmake --install` gives: the library, its headers and a relocatable package, and the command line if it was built.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ConvTranspose)
install(TARGETS convtranspose EXPORT ConvTransposeTargets FILE_SET HEADERS)
install(EXPORT ConvTransposeTargets NAMESPACE ConvTranspose:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ConvTransposeConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/ConvTransposeConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ConvTransposeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ConvTransposeConfig.cmake ${PROJECT_BINARY_DIR}/ConvTransposeConfigVersion.cmake
        DESTINATION ${package_dir})
if(TARGET convtranspose_cli)
    install(TARGETS convtranspose_cli)
endif()
