package import Foundation
package import NotificationHubs

extension Date {
  /// Milliseconds since 1970, as stores keep it; dates beyond any calendar are held at the ends.
  package var milliseconds: Int64 {
    let value = (timeIntervalSince1970 * 1000).rounded()
    if value.isNaN { return 0 }
    return Int64(exactly: max(-9e15, min(9e15, value))) ?? 0
  }

  package init(milliseconds: Int64) {
    self.init(timeIntervalSince1970: Double(milliseconds) / 1000)
  }
}

extension PushChannel {
  /// The text in ``TargetPage/handles``.
  package var stored: String {
    switch self {
    case .handle(let text): text
    case .subscription(let endpoint, let p256dh, let auth): "\(endpoint)\n\(p256dh)\n\(auth)"
    }
  }

  /// Reads ``stored`` back.
  package init(stored: String, platform: PushPlatform) {
    self = .handle(stored)
    guard platform == .browser else { return }
    let parts = stored.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3 else { return }
    self = .subscription(endpoint: parts[0], p256dh: parts[1], auth: parts[2])
  }
}

extension Installation {
  /// Marks the channels that have a handle, in its stored form.
  package mutating func setExpired(_ isExpired: Bool, handle: String) {
    if pushChannel.stored == handle { pushChannelExpired = isExpired }
    for (id, tile) in secondaryTiles where tile.pushChannel == handle {
      secondaryTiles[id]?.pushChannelExpired = isExpired
    }
  }

  /// Replaces a handle, in its stored form, wherever a channel has it.
  package mutating func replaceHandle(_ old: String, with new: String) {
    if pushChannel.stored == old { pushChannel = .handle(new) }
    for (id, tile) in secondaryTiles where tile.pushChannel == old {
      secondaryTiles[id]?.pushChannel = new
    }
  }
}
