/// What a push service calls a message: a UUID for APNs, kept without a string, and a word of the
/// service's own form elsewhere.
enum MessageID: Hashable, Sendable {
  case apns(APNsMessageID)
  case word(String)

  var text: String {
    switch self {
    case .apns(let id): id.text
    case .word(let word): word
    }
  }

  /// Reads what `text` wrote.
  init(_ text: String) { self = APNsMessageID(text).map(MessageID.apns) ?? .word(text) }
}
