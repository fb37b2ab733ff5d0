# A module of the project, of the name that one of the package has.
if(PROJECT_NAME STREQUAL ConvTranspose)
    message(FATAL_ERROR "the package includes a module of the project that takes it in")
endif()
