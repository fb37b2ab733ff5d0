# cmake -D LOG=file -P kernel_failed.cmake: shows what a generator said, and fails in its stead.
file(READ ${LOG} said)
message(FATAL_ERROR "${said}")
