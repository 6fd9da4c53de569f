#pragma once

#include <string>
#include <string_view>

namespace framelane {

// Which names, of parameters, options and headers, stand before a secret. Any thread.

/// ASCII letters in lower case, whatever the locale.
std::string lowered(std::string_view text);

/// True if a parameter of this name holds a credential. Some names and endings mean that anywhere,
/// some only in a URL, where cameras have loginpas=, userpwd= and similar ones. Endings of many
/// harmless words ("monkey", "usekey") count only if they are words of their own.
bool carries_credential(std::string_view name, bool in_url);

/// SRT's stream id names a stream, and often holds the right to publish to it.
bool is_stream_id(std::string_view name);

/// True for FFmpeg's options whose whole value is a secret: passwords, keys and the like.
bool is_secret_option(std::string_view name);

bool is_credential_header(std::string_view name);

/// True for headers of a request that hold no credential. A camera may name those that do as it
/// likes.
bool is_harmless_header(std::string_view name);

/// True for cookies whose names say that they hold a credential or a session.
bool is_session_cookie(std::string_view name);

/// True for cookies, and attributes of cookies, that hold no credential.
bool is_harmless_cookie(std::string_view name);

}  // namespace framelane
