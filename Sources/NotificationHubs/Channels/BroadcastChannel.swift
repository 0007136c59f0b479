import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An APNs broadcast channel. Every Live Activity that subscribes to it receives each update sent
/// to the channel, so one request reaches all followers of an event. Belfry only.
///
/// A channel belongs to the app and the environment of the hub's Apple credential.
/// - SeeAlso:
///   <https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns>
public struct BroadcastChannel: Hashable, Sendable, Identifiable {
  /// The policy for updates to devices that cannot be reached at once.
  public enum Storage: String, CaseIterable, Hashable, Sendable {
    /// Updates are not stored; such a channel allows a higher rate of updates.
    case noMessage = "none"
    /// APNs stores the latest update until it expires.
    case latestMessage = "latest"
  }

  /// The id as APNs assigned it, in base 64. The app passes it to ActivityKit as `.channel(id)`.
  public let id: String
  /// The storage policy of the channel.
  public let storage: Storage

  /// Creates a description of a channel; ``NotificationHubClient/createBroadcastChannel(storing:)``
  /// creates the channel itself.
  public init(id: String, storage: Storage) {
    self.id = id
    self.storage = storage
  }

  /// Whether a text can be a channel id: base 64 with padding, 1 to 64 characters.
  package static func isID(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && Data(base64Encoded: text) != nil
  }
}

/// The identifiers that APNs gave a broadcast.
public struct BroadcastReceipt: Hashable, Sendable {
  /// The `apns-request-id`, a UUID.
  public let requestID: String
  /// The key to the delivery log in Apple's Push Notifications Console; `nil` outside Apple's
  /// development environment.
  public let uniqueID: String?

  /// Creates a receipt.
  public init(requestID: String, uniqueID: String?) {
    self.requestID = requestID
    self.uniqueID = uniqueID
  }
}

extension BroadcastChannel {
  /// `{"id":"c29tZUNoYW5uZWw=","storage":"latest","pushType":"LiveActivity"}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("id", id)
      writer.member("storage", storage.rawValue)
      writer.member("pushType", "LiveActivity")
    }
  }

  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root.text("id"), let storage = root.text("storage").flatMap(Storage.init)
    else { throw WireFormatError("The reply is no broadcast channel.") }
    self.init(id: id, storage: storage)
  }

  /// The request body for a new channel: `{"storage":"latest"}`
  package static func creation(_ storage: Storage) -> [UInt8] {
    JSONWriter.object { $0.member("storage", storage.rawValue) }
  }

  /// The ids of a hub's channels: `{"channels":["c29tZUNoYW5uZWw="]}`
  package static func list(_ ids: [String]) -> [UInt8] {
    JSONWriter.object { $0.array("channels", ids) { $0.string($1) } }
  }

  package static func ids(json: some Collection<UInt8>) throws(WireFormatError) -> [String] {
    guard let items = try JSONValue.parse(json).array("channels") else {
      throw WireFormatError("The reply is no list of broadcast channels.")
    }
    return items.compactMap(\.scalarText)
  }
}

extension BroadcastReceipt {
  /// `{"requestId":"…","uniqueId":null}`
  package var json: [UInt8] {
    JSONWriter.object { writer in
      writer.member("requestId", requestID)
      writer.name("uniqueId")
      if let uniqueID { writer.string(uniqueID) } else { writer.raw("null") }
    }
  }

  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let requestID = root.text("requestId") else {
      throw WireFormatError("The reply names no request.")
    }
    self.init(requestID: requestID, uniqueID: root.text("uniqueId"))
  }
}
