/// What becomes of the message after a reply; the raw values are the specification's words (spec
/// `pns/README.md` section 2).
enum ReplyRetry: String, Sendable {
  case none
  case never
  case fix
  case refreshOnce = "refresh-once"
  case newConnection = "new-connection"
  case backoff
  case pauseCredential = "pause-credential"
}

/// What becomes of the stored handle after a reply; the raw values are the specification's words.
enum ReplyHandle: String, Sendable {
  case keep
  case remove
  case removeIfOlder = "remove-if-older"
  case replace
}
