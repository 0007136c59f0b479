package import NotificationHubs
import Wire

extension NotificationSummary {
  /// Maximum number of characters of a title and of a text.
  package static let wordLimit = 200

  /// - Parameter body: `nil` if it is not kept, or not to be shown.
  package mutating func read(_ body: [UInt8]?) { read(body, format: format) }
}

extension NotificationWords {
  /// Reads what the notification says from its payload. The words of a sealed message
  /// (docs/backend.md) are for its device alone, those beside them included. Of a template send
  /// only properties that are named as words are read: others may be anything.
  ///
  /// - Parameters:
  ///   - body: `nil` if it is not kept, or not to be shown.
  ///   - format: The send format.
  package mutating func read(_ body: [UInt8]?, format: String) {
    guard let body else {
      textState = .off
      return
    }
    let json = try? JSONValue.parse(body)
    if let json, json.isSealed {
      textState = .sealed
      return
    }
    let platform = PushPlatform(sendFormat: format)
    let words =
      if format == WireName.templateFormat {
        json.flatMap(PayloadWords.init(properties:))
      } else {
        platform.flatMap { PayloadWords(body, for: $0) }
      }
    title = words?.title?.clipped
    text = words?.body?.clipped
    if title != nil || text != nil {
      textState = .kept
    } else if platform?.traits.phone != nil {
      textState = .silent
    }
  }
}

extension NotificationSummary {
  /// Whether it has words that a person can read.
  package var showsText: Bool { textState == .kept }
}

extension NotificationTelemetry {
  /// Whether it has a payload that a person can read.
  package var showsText: Bool { body != nil && textState != .sealed }
}

extension NotificationExplanation {
  /// Whether it has a payload that a person can read.
  package var showsText: Bool {
    candidates.contains { candidate in
      guard let payload = candidate.rendering?.payload else { return false }
      return (try? JSONValue.parse(payload.utf8))?.isSealed != true
    }
  }
}

extension PayloadWords {
  /// The properties that templates commonly show.
  fileprivate init?(properties: JSONValue) {
    guard case .object(let members) = properties else { return nil }
    // A payload may have thousands of members, and a search reads many payloads.
    let texts = members.prefix(100).reduce(into: [String: String]()) { texts, member in
      let name = member.name.lowercased()
      if texts[name] == nil, let text = member.value.scalarText { texts[name] = text }
    }
    func first(_ names: [String]) -> String? {
      names.lazy.compactMap { texts[$0] }.first { !$0.isEmpty }
    }
    self.init(
      title: first(["title", "subject", "headline"]),
      body: first(["message", "body", "text", "msg", "alert", "content", "description"]))
  }
}

extension JSONValue {
  /// Whether it carries a sealed payload, at any of the places where platforms have it.
  fileprivate var isSealed: Bool {
    let places = [self, self["data"], self["message"]?["data"], self["payload"]]
    return places.contains { place in
      if case .string? = place?["sealed"] { return true }
      guard case .string(let text)? = place, text.contains(#""sealed""#) else { return false }
      return (try? JSONValue.parse(text.utf8))?["sealed"] != nil
    }
  }
}

extension String {
  fileprivate var clipped: String? {
    let text = prefix(NotificationSummary.wordLimit)
    return text.isEmpty ? nil : String(text)
  }
}
