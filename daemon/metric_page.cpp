#include "daemon/metric_page.hpp"

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace framelane {

using prometheus::ClientMetric;
using prometheus::MetricType;

MetricFamily::MetricFamily(MetricType type, std::string name, std::string help)
    : data_{std::move(name), std::move(help), type, {}} {}

void MetricFamily::add(MetricLabels labels, double value) {
  ClientMetric metric;
  metric.label = std::move(labels);
  if (data_.type == MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  data_.metric.push_back(std::move(metric));
}

void MetricFamily::add(MetricLabels labels, const Histogram::Snapshot& snapshot) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.histogram.sample_count = snapshot.count;
  metric.histogram.sample_sum = snapshot.sum_seconds;
  std::uint64_t cumulated = 0;
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    cumulated += snapshot.counts[i];
    metric.histogram.bucket.push_back({cumulated, Histogram::kBounds[i]});
  }
  data_.metric.push_back(std::move(metric));  // the serializer adds the last bucket, +Inf
}

MetricFamily& MetricPage::counter(std::string name, std::string help) {
  return families_.emplace_back(MetricType::Counter, std::move(name), std::move(help));
}

MetricFamily& MetricPage::gauge(std::string name, std::string help) {
  return families_.emplace_back(MetricType::Gauge, std::move(name), std::move(help));
}

MetricFamily& MetricPage::histogram(std::string name, std::string help) {
  return families_.emplace_back(MetricType::Histogram, std::move(name), std::move(help));
}

std::string MetricPage::text() {
  std::vector<prometheus::MetricFamily> families;
  families.reserve(families_.size());
  for (MetricFamily& family : families_) families.push_back(family.take());
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace framelane
