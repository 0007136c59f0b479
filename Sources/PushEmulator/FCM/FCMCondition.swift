import Wire

/// A condition over topics, such as `'a' in topics && !('b' in topics)`
/// (https://firebase.google.com/docs/cloud-messaging/send-topic-messages).
indirect enum FCMCondition: Sendable, Equatable {
  case topic(String)
  case not(FCMCondition)
  case both(FCMCondition, FCMCondition)
  case either(FCMCondition, FCMCondition)

  /// Maximum number of topics that a condition names.
  static let topicLimit = 5

  /// - Returns: `nil` for a condition that FCM would refuse.
  init?(_ text: String) {
    var parser = Parser(rest: Array(text.utf8)[...])
    guard text.utf8.count <= 8192, let condition = parser.sequence(depth: 0), parser.rest.isEmpty,
      condition.topics.count <= Self.topicLimit
    else { return nil }
    self = condition
  }

  /// The topics in order, repeated ones included.
  var topics: [String] {
    switch self {
    case .topic(let name): [name]
    case .not(let one): one.topics
    case .both(let left, let right), .either(let left, let right): left.topics + right.topics
    }
  }

  /// Whether it is true for a device with these subscriptions.
  func isTrue(_ isSubscribed: (String) -> Bool) -> Bool {
    switch self {
    case .topic(let name): isSubscribed(name)
    case .not(let one): !one.isTrue(isSubscribed)
    case .both(let left, let right): left.isTrue(isSubscribed) && right.isTrue(isSubscribed)
    case .either(let left, let right): left.isTrue(isSubscribed) || right.isTrue(isSubscribed)
    }
  }

  private struct Parser {
    var rest: ArraySlice<UInt8>

    /// Terms and operators, evaluated from left to right as FCM's documentation says: neither
    /// operator comes first.
    mutating func sequence(depth: Int) -> FCMCondition? {
      guard var left = term(depth: depth) else { return nil }
      while true {
        let isBoth = take("&&")
        guard isBoth || take("||") else { return left }
        guard let right = term(depth: depth) else { return nil }
        left = isBoth ? .both(left, right) : .either(left, right)
      }
    }

    private mutating func term(depth: Int) -> FCMCondition? {
      guard depth < 32 else { return nil }
      if take("!") { return term(depth: depth + 1).map { .not($0) } }
      if take("(") {
        guard let inner = sequence(depth: depth + 1), take(")") else { return nil }
        return inner
      }
      guard let quote = ["'", "\""].first(where: { take($0) }),
        let end = rest.firstIndex(of: quote.utf8.first ?? 0)
      else { return nil }
      let name = String(decoding: rest[..<end], as: UTF8.self)
      rest = rest[(end + 1)...]
      guard FCMTopics.isName(name), take("in"), take("topics") else { return nil }
      return .topic(name)
    }

    /// Removes a text and the blanks around it.
    private mutating func take(_ text: String) -> Bool {
      rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
      guard rest.starts(with: text.utf8) else { return false }
      rest = rest.dropFirst(text.utf8.count)
      // A topic's name, after a quote, may not begin with one.
      if text != "'", text != "\"" { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }
      return true
    }
  }
}
