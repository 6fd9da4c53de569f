#pragma once

#include <string>
#include <string_view>

namespace framelane {

/// Remembers a secret (a value that came from ${file:…}, or the password and the signed query
/// values of a URL): redact() blanks it from then on, also where any of its characters are
/// percent-encoded, and its percent-decoded form. A value shorter than 4 characters is blanked only
/// as the value of a URL's parameter. Thread-safe; never forgets.
void register_secret(std::string_view secret);

/// `text` without secrets: the user information of every URL in it becomes `***@` (also when the
/// user name or password holds '@', '.', '%' or '/'), the last path component of an RTMP URL (a
/// stream key), values of query parameters that carry credentials (token, key, password, userpwd,
/// …) and of Authorization and Cookie headers become `***`, and every registered secret is blanked
/// wherever it stands. Where a URL can be read in two ways, what could be a password is blanked.
/// What has no secret comes back unchanged; redacting twice changes nothing more. Thread-safe.
std::string redact(std::string_view text);

/// The password and the credential query values of a URL go to register_secret, also as Basic
/// authentication sends them; a user without a password and the stream key of an RTMP URL when
/// long enough to be a token.
void register_url_secrets(std::string_view url);

}  // namespace framelane
