/// What a topic means: an app, and the kind of token it is for.
struct TopicTarget: Sendable, Equatable {
  let app: UInt32
  let kind: APNsKind
}

/// Reading `apns-topic` (emulator.md, 4.2, checks 12 and 13).
enum APNsTopic {
  /// 1 to 255 letters, digits, `.`, `-` and `_`.
  static func isWellFormed(_ topic: ArraySlice<UInt8>) -> Bool {
    guard !topic.isEmpty, topic.count <= 255 else { return false }
    return topic.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        true
      default: false
      }
    }
  }

  /// Whether the topic ends as the push type demands. One without a suffix may not have that of
  /// another type, unless the team has an app that is really called so.
  static func suffixFits(
    _ topic: ArraySlice<UInt8>, pushType: APNsPushType, team: String, accounts: APNsAccounts
  ) -> Bool {
    if pushType == .mdm { return true }
    let suffix = pushType.kind.topicSuffix.utf8
    if !suffix.isEmpty { return hasSuffix(topic, suffix) }
    return !APNsKind.allCases.contains { kind in
      kind != .alert && hasSuffix(topic, kind.topicSuffix.utf8)
    } || accounts.hasApp(team: team, bundleID: topic)
  }

  /// The app and kind that a topic means within a team; `nil` when the team has no such app.
  ///
  /// - Parameter pushType: `nil` when the request has none: then the topic alone decides.
  static func target(
    of topic: ArraySlice<UInt8>, pushType: APNsPushType?, team: String, accounts: APNsAccounts
  ) -> (target: TopicTarget, bundleID: String)? {
    let kinds = [APNsKind.alert] + APNsKind.allCases.filter { $0 != .alert }
    for kind in pushType.map({ [$0.kind] }) ?? kinds {
      let suffix = kind.topicSuffix.utf8
      guard suffix.isEmpty || hasSuffix(topic, suffix) else { continue }
      let bundleID = String(decoding: topic.dropLast(suffix.count), as: UTF8.self)
      if let app = accounts.app(team: team, bundleID: bundleID) {
        return (TopicTarget(app: app.number, kind: kind), bundleID)
      }
    }
    return nil
  }

  private static func hasSuffix(_ topic: ArraySlice<UInt8>, _ suffix: String.UTF8View) -> Bool {
    topic.count > suffix.count && topic.suffix(suffix.count).elementsEqual(suffix)
  }
}
