# nlohmann_json::nlohmann_json, this machine's: a header-only library, which is as good for another one.
if(CMAKE_CROSSCOMPILING)
    if(NOT TARGET nlohmann_json::nlohmann_json)
        find_path(CONVTRANSPOSE_JSON_INCLUDE nlohmann/json.hpp PATHS /usr/local/include /usr/include NO_CMAKE_FIND_ROOT_PATH
                  REQUIRED DOC "Folder of this machine that has nlohmann/json.hpp")
        # By itself: beside it lie the headers of this machine's C library.
        file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/json)
        file(CREATE_LINK ${CONVTRANSPOSE_JSON_INCLUDE}/nlohmann ${PROJECT_BINARY_DIR}/json/nlohmann SYMBOLIC)
        add_library(nlohmann_json INTERFACE)
        add_library(nlohmann_json::nlohmann_json ALIAS nlohmann_json)
        target_include_directories(nlohmann_json SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/json)
    endif()
else()
    find_package(nlohmann_json 3.11 REQUIRED)
endif()
