import Wire

/// The words in a payload that a device shows a person; `nil` members are not in it.
package struct PayloadWords: Hashable, Sendable {
  package var title: String?
  package var body: String?

  package init(title: String?, body: String?) {
    self.title = title
    self.body = body
  }

  /// - Returns: `nil` when a device of the platform shows nothing.
  package init?(_ payload: some Collection<UInt8>, for platform: PushPlatform) {
    guard let phone = platform.traits.phone else { return nil }
    switch phone.reading {
    case .alert:
      guard let alert = (try? JSONValue.parse(payload))?["aps"]?["alert"] else { return nil }
      let whole = alert.scalarText
      self.init(
        title: (alert["title"] ?? alert["title-loc-key"])?.scalarText,
        body: whole ?? (alert["body"] ?? alert["loc-key"])?.scalarText)
      if title == nil, body == nil { return nil }
      return
    case .toast:
      let lines = Self.toastLines(payload)
      if let first = lines.first {
        self.init(title: first, body: lines.dropFirst().joined(separator: "\n"))
        return
      }
    case .members(let pairs):
      guard var json = try? JSONValue.parse(payload) else { break }
      // A device gets it without the document around it.
      if platform == .fcmv1, let message = json["message"], message.members != nil {
        json = message
      }
      func text(_ path: String) -> String? {
        path.split(separator: ".").reduce(json as JSONValue?) { $0?[String($1)] }?.scalarText
      }
      for pair in pairs {
        self.init(title: text(pair.title), body: text(pair.body))
        if title != nil || body != nil { return }
      }
    }
    let text = String(decoding: payload, as: UTF8.self)
    guard phone.showsText, !text.isEmpty else { return nil }
    self.init(title: nil, body: text)
  }

  /// The lines of text in a toast.
  private static func toastLines(_ payload: some Collection<UInt8>) -> [String] {
    String(decoding: payload, as: UTF8.self).split(
      separator: "<text", omittingEmptySubsequences: false
    )
    .dropFirst()
    .compactMap { part in
      guard let start = part.firstIndex(of: ">") else { return nil }
      let inner = part[part.index(after: start)...]
      guard let end = inner.firstRange(of: "</text>") else { return nil }
      return [
        ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&"),
      ].reduce(String(inner[..<end.lowerBound])) { $0.replacing($1.0, with: $1.1) }
    }
  }
}
