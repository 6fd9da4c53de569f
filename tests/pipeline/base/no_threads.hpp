#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>

namespace framelane::testing {

/// While it lives, no thread can be started: its stack would not fit into any address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t endless;
    pthread_attr_init(&endless);
    EXPECT_EQ(pthread_attr_setstacksize(&endless, std::size_t{1} << 60U), 0);
    EXPECT_EQ(pthread_setattr_default_np(&endless), 0);
    pthread_attr_destroy(&endless);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace framelane::testing
