#pragma once

#include <string>
#include <string_view>

namespace framelane {

/// Remembers a secret: a value from ${file:…}, a URL's password, a signature in its query. From
/// then on redact() masks it, plain, percent-encoded in whole or in part, and percent-decoded. A
/// secret shorter than 4 characters is masked only as the value of a URL's parameter. Never
/// forgets. Any thread.
void register_secret(std::string_view secret);

/// Returns `text` with `***` in place of:
/// - the user name and password of every URL, even if they hold '@', '.', '%' or '/';
/// - the last path component of an RTMP URL, which is a stream key;
/// - the values of query parameters that carry credentials (token, key, password, userpwd, …),
///   and SRT's streamid;
/// - the values of Authorization and Cookie headers;
/// - every registered secret, wherever it stands.
/// If a URL can be read in two ways, everything that could be a password is masked. Text without
/// secrets comes back unchanged, and redacting twice changes nothing more. Any thread.
std::string redact(std::string_view text);

/// Registers the secrets of a URL: its password, also in the form that Basic authentication sends,
/// and the credentials in its query. A user name without a password, the stream key of an RTMP URL
/// and SRT's stream id are registered if they are long enough to be a token.
void register_url_secrets(std::string_view url);

/// Registers what the value of an FFmpeg option holds of secrets: passphrases and keys, the values
/// of headers whose names say that they carry a credential, cookies, URLs, and as above stream keys
/// and ids. The values of other headers are registered if they are long enough to be a token.
/// Well-known headers and cookies without a credential are left.
void register_option_secrets(std::string_view name, std::string_view value);

}  // namespace framelane
