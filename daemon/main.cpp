#include "daemon/cli.hpp"

int main(int argc, char** argv) { return framelane::run_cli(argc, argv); }
