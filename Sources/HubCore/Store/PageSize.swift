import NotificationHubs

/// The size of a list's page so far: a page ends with the entry that reaches ``limit``, so that a
/// hundred large devices do not make a reply of many megabytes.
package struct PageSize: Hashable, Sendable {
  /// In bytes of the entries' contents, without the names and punctuation around them.
  package static let limit = 1 << 20

  private var bytes = 0

  package var isReached: Bool { bytes >= Self.limit }

  mutating func add(_ installation: Installation) { bytes += installation.size }
  mutating func add(_ draft: RegistrationDraft) { bytes += draft.size }
}

extension Installation {
  /// The size of its contents, in bytes; see ``PageSize``.
  package var size: Int {
    secondaryTiles.reduce(
      installationID.utf8.count + pushChannel.size + Self.size(tags) + Self.size(templates)
        + Self.size(pushVariables)
    ) { sum, tile in
      sum + tile.key.utf8.count + tile.value.pushChannel.utf8.count + Self.size(tile.value.tags)
        + Self.size(tile.value.templates)
    }
  }

  private static func size(_ templates: [String: PushTemplate]) -> Int {
    templates.reduce(0) { $0 + $1.key.utf8.count + $1.value.size }
  }

  fileprivate static func size(_ tags: [Tag]) -> Int {
    tags.reduce(0) { $0 + $1.rawValue.utf8.count }
  }

  fileprivate static func size(_ texts: [String: String]) -> Int {
    texts.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
  }
}

extension RegistrationDraft {
  fileprivate var size: Int {
    var template = 0
    if case .template(let one, _) = kind { template = one.size }
    return template + channel.size + Installation.size(tags) + Installation.size(pushVariables)
  }
}

extension PushTemplate {
  fileprivate var size: Int {
    body.utf8.count + Installation.size(headers) + Installation.size(tags)
  }
}

extension PushChannel {
  fileprivate var size: Int {
    switch self {
    case .handle(let text): text.utf8.count
    case .subscription(let endpoint, let p256dh, let auth):
      endpoint.utf8.count + p256dh.utf8.count + auth.utf8.count
    }
  }
}
