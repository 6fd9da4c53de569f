#pragma once

namespace framelane {

/// Exit codes of the command line, as docs/operations.md lists them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitConfiguration = 78;  // EX_CONFIG

/// The whole program: parses the arguments, runs the command, returns its exit code. Overwrites the
/// URLs in `argv`, because other users can read it. Main thread.
int run_cli(int argc, char** argv);

}  // namespace framelane
