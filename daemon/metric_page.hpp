#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "pipeline/measure/histogram.hpp"

namespace framelane {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

/// A metric with all its series.
class MetricFamily {
 public:
  MetricFamily(prometheus::MetricType type, std::string name, std::string help);

  void add(MetricLabels labels, double value);
  void add(MetricLabels labels, const Histogram::Snapshot& snapshot);

  /// Adds a series for each name. The name is the value of `label`, which comes after `labels`.
  template <std::size_t kCount, typename Counts>
  void add_each(const MetricLabels& labels, const char* label,
                const std::array<std::string_view, kCount>& names, const Counts& counts) {
    static_assert(std::tuple_size_v<Counts> == kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      MetricLabels with_name = labels;
      with_name.push_back({label, std::string(names[i])});
      add(std::move(with_name), static_cast<double>(counts[i]));
    }
  }

  /// The family is empty afterwards.
  prometheus::MetricFamily take() { return std::move(data_); }

 private:
  prometheus::MetricFamily data_;
};

/// A page in the Prometheus text format. Families are declared first, then filled, then written.
class MetricPage {
 public:
  MetricFamily& counter(std::string name, std::string help);
  MetricFamily& gauge(std::string name, std::string help);
  MetricFamily& histogram(std::string name, std::string help);

  /// The page is empty afterwards.
  std::string text();

 private:
  std::deque<MetricFamily> families_;  // deque: references stay valid
};

}  // namespace framelane
