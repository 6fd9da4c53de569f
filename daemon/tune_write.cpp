#include "daemon/tune_write.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "config/yaml_edit.hpp"

namespace framelane {
namespace {

using Json = nlohmann::json;
using Feed = TunedSettings::Feed;

Feed feed_of(const Json& json) {
  const int slices = json.at("slices");
  return {json.value("name", ""), json.at("lanes"), json.at("ring"),
          slices == 0 ? std::nullopt : std::optional(slices)};
}

/// What has to be set in a map so that `feed` comes out; where `now` is given, only what differs.
std::vector<YamlEdit> edits_of(const std::vector<std::string>& map, const Feed& feed,
                               const FeedOptions* now) {
  std::vector<YamlEdit> edits;
  const auto set = [&](const char* key, std::string value, bool is_so) {
    if (now != nullptr && is_so) return;
    edits.push_back({map, std::move(value)});
    edits.back().path.emplace_back(key);
  };
  set("lanes", std::to_string(feed.lanes), now != nullptr && now->lanes == feed.lanes);
  set("ring", std::to_string(feed.ring), now != nullptr && now->ring == feed.ring);
  set("slices", feed.slices ? std::to_string(*feed.slices) : "auto",
      now != nullptr && now->slices == feed.slices);
  return edits;
}

LoadResult load(const std::string& text, const std::string& file) {
  LoadOptions options;
  options.require_environment = false;
  return load_config_text(text, file, options);
}

bool is_same_device(const DeviceConfig& device, const std::string& name) {
  using Kind = DeviceConfig::Kind;
  if (name == "cpu") return device.kind == Kind::kCpu;
  const int index = name == "cuda" ? 0 : std::atoi(name.c_str() + std::string("cuda:").size());
  return device.kind == Kind::kCuda && device.index == index;
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw std::runtime_error(file + ": " + why);
}

/// A file of our own beside another, that goes if it does not take its name.
class NewFile {
 public:
  explicit NewFile(const std::string& name) : name_(name), part_(name + ".XXXXXX") {
    fd_ = mkostemp(part_.data(), O_CLOEXEC);
    if (fd_ < 0) fail("a file beside " + name_ + " cannot be made");
  }
  ~NewFile() {
    close(fd_);
    if (!part_.empty()) unlink(part_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void fill(const std::string& text, const struct stat& like) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = ::write(fd_, text.data() + done, text.size() - done);
      if (count < 0 && errno != EINTR) fail(part_ + " cannot be written");
      if (count > 0) done += static_cast<std::size_t>(count);
    }
    struct stat own {};
    if (fstat(fd_, &own) != 0) fail(part_ + " cannot be looked at");
    if ((own.st_uid != like.st_uid || own.st_gid != like.st_gid) &&
        fchown(fd_, like.st_uid, like.st_gid) != 0) {
      fail(name_ + " cannot be given to its owner again");
    }
    if (fchmod(fd_, like.st_mode & 07777) != 0) fail(part_ + " cannot be given its mode");
    if (fsync(fd_) != 0) fail(part_ + " cannot be written");
  }
  void take_name() {
    if (std::rename(part_.c_str(), name_.c_str()) != 0) fail(name_ + " cannot be replaced");
    part_.clear();
    const std::string folder = std::filesystem::path(name_).parent_path();
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;  // it has its name; whether that survives a power cut is up to the system
    fsync(fd);
    close(fd);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::generic_category().message(errno));
  }

  const std::string name_;
  std::string part_;
  int fd_;
};

}  // namespace

TunedSettings tuned_settings(const std::string& text) {
  const Json json = Json::parse(text);
  TunedSettings settings{json.at("device"), feed_of(json.at("defaults")), {}};
  for (const Json& feed : json.at("feeds")) settings.feeds.push_back(feed_of(feed));
  return settings;
}

std::variant<std::string, std::vector<Problem>> with_settings(const std::string& text,
                                                              const std::string& file,
                                                              const TunedSettings& settings) {
  LoadResult loaded = load(text, file);
  if (auto* problems = std::get_if<std::vector<Problem>>(&loaded)) return std::move(*problems);
  std::vector<YamlEdit> edits = edits_of({"defaults"}, settings.defaults, nullptr);
  if (!is_same_device(std::get<Config>(loaded).device, settings.device)) {
    edits.insert(edits.begin(), {{"device"}, settings.device});
  }
  std::string why;
  std::optional<std::string> edited = edit_yaml(text, edits, why);
  if (!edited) refuse(file, why);

  // What a feed or its profile says itself wins over the defaults: then the feed has to say more.
  for (const bool last : {false, true}) {
    loaded = load(*edited, file);
    if (auto* problems = std::get_if<std::vector<Problem>>(&loaded)) return std::move(*problems);
    const Config& config = std::get<Config>(loaded);
    edits.clear();
    for (const Feed& wanted : settings.feeds) {
      const auto feed = std::ranges::find(config.feeds, wanted.name, &FeedOptions::name);
      if (feed == config.feeds.end()) {
        refuse(file, "the feed " + wanted.name + " is no longer in it; run tune again");
      }
      std::ranges::move(edits_of({"feeds", wanted.name}, wanted, &*feed),
                        std::back_inserter(edits));
    }
    if (last && (!edits.empty() || !is_same_device(config.device, settings.device))) {
      refuse(file, "the settings would not come into effect; set them by hand");
    }
    if (edits.empty()) continue;
    edited = edit_yaml(*edited, edits, why);
    if (!edited) refuse(file, why);
  }
  return *std::move(edited);
}

void replace_file(const std::string& path, const std::string& text) {
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error);  // a link stays one
  struct stat status {};
  if (error || stat(name.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
    throw std::runtime_error(path + " is no file that can be replaced");
  }
  NewFile file(name);
  file.fill(text, status);
  file.take_name();
}

}  // namespace framelane
