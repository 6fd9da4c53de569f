#pragma once

namespace framelane {

/// Ends what a program prints: false, with a line on standard error that names it, if not
/// everything could be written, for example because the disk is full.
bool finish_standard_output(const char* program);

}  // namespace framelane
