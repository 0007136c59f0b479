import NotificationHubs
import Wire

extension DirectTarget {
  /// Maximum length of a handle, in bytes; those of the push services stay below 2 KB.
  private static let maxHandleBytes = 4096

  /// The one device of a direct send (docs/protocol/rest.md, section 5.4).
  ///
  /// - Throws: ``HubFailure`` with 400.
  static func target(of headers: SendHeaders, platform: PushPlatform) throws -> DirectTarget {
    guard let handle = headers[SendHeaderName.deviceHandle]?.trimmingBlanks, !handle.isEmpty else {
      throw HubFailure(
        status: 400,
        message: "The header ServiceBusNotification-DeviceHandle is missing; it names the device "
          + "of a direct send")
    }
    guard platform == .browser else { return try targets(for: [.handle(handle)], platform)[0] }
    guard let p256dh = headers[SendHeaderName.p256dh]?.trimmingBlanks, !p256dh.isEmpty,
      let auth = headers[SendHeaderName.auth]?.trimmingBlanks, !auth.isEmpty
    else {
      throw HubFailure(
        status: 400,
        message: "A direct send to a browser needs the headers P256DH and Auth beside the "
          + "endpoint in ServiceBusNotification-DeviceHandle")
    }
    let channel = PushChannel.subscription(endpoint: handle, p256dh: p256dh, auth: auth)
    return try targets(for: [channel], platform)[0]
  }

  /// The devices of a direct send in order, with repetitions marked.
  ///
  /// - Throws: ``HubFailure`` with 400 for a text that cannot be a push service's handle.
  static func targets(
    for channels: [PushChannel], _ platform: PushPlatform
  ) throws -> [DirectTarget] {
    var seen: Set<String> = []
    return try channels.enumerated().map { index, channel in
      let channel = try normalized(channel, platform, index)
      return DirectTarget(
        handle: channel.stored, isDuplicate: !seen.insert(channel.handle).inserted)
    }
  }

  private static func normalized(
    _ channel: PushChannel, _ platform: PushPlatform, _ index: Int
  ) throws -> PushChannel {
    func refusal(_ fault: String) -> HubFailure {
      HubFailure(status: 400, message: "The device handle at position \(index) \(fault)")
    }
    var channel = channel
    switch (channel, platform) {
    case (.handle(let text), .browser):
      guard let read = try? PushChannel.decode(.string(text), platform: .browser).channel else {
        throw refusal("must be a subscription with endpoint, p256dh and auth")
      }
      channel = read
    case (.subscription, .browser): break
    case (.subscription, _): throw refusal("is a subscription, which only a browser has")
    case (.handle(let text), .apns):
      // In the stored form of registrations, so that equal devices have equal handles.
      if text.utf8.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) {
        channel = .handle(text.uppercased())
      }
    case (.handle(let text), .baidu):
      let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw refusal("must be a Baidu device as userId-channelId")
      }
    case (.handle, _): break
    }
    let parts =
      switch channel {
      case .handle(let text): [text]
      case .subscription(let endpoint, let p256dh, let auth): [endpoint, p256dh, auth]
      }
    guard parts.allSatisfy({ !$0.isEmpty }) else { throw refusal("is empty") }
    guard parts.allSatisfy({ $0.utf8.count <= maxHandleBytes }) else {
      throw refusal("is longer than \(maxHandleBytes) bytes")
    }
    guard parts.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }) else {
      throw refusal("contains a control character")
    }
    return channel
  }
}
