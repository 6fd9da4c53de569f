#pragma once

namespace framelane {

/// From now on what fontconfig finds wrong is in the log, once each, with what helps. It writes to
/// the stream stderr and knows no other way, so that all of that stream goes through here; the rest
/// passes as it is. Before other threads start; the second call does nothing.
void take_over_fontconfig_log();

}  // namespace framelane
