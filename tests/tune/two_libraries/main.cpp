#include "one_layer.h"
#include "small_networks.h"

int main() { return convt_isa_count() > 0 ? one_layer_layer_count - small_networks_layer_count : 1; }
