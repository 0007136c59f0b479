import Foundation

/// What outlives the emulator in its state file: apps with their keys, devices with their tokens,
/// what waits for them and what they were shown last. Journal, statistics, faults and clock begin
/// again with each run.
struct Snapshot: Codable, Sendable {
  static let currentVersion = 1
  /// Events kept per device.
  static let eventsPerDevice = 100

  var version = Snapshot.currentVersion
  var generator: SeededGenerator
  var lastApp: UInt32
  var apps: [App]
  var keys: [Key]
  /// In the order of their numbers; `nil` for one that was deleted.
  var devices: [SavedDevice?]
  /// By app number: the newest id of the app's event stream.
  var feeds: [UInt32: Int]
  var channels: [Channel]?
  var fcm: [FCMApp]?
  var webPush: [WebPushApp]?
  var wns: [WNSApp]?
  var adm: [ADMApp]?
  var baidu: [BaiduApp]?
  var xiaomi: [XiaomiApp]?

  struct App: Codable, Sendable {
    let number: UInt32
    let bundleID: String
    let teamID: String
    let environment: APNsEnvironmentScope
    let certificates: [String]
    /// `nil` in a file of an earlier version, where every app had them.
    let hasBroadcasts: Bool?
  }

  /// A broadcast channel of APNs.
  struct Channel: Codable, Sendable {
    let id: String
    let app: UInt32
    let environment: APNsEnvironment
    let policy: APNsChannel.StoragePolicy
    let createdAt: Int64
    /// Device indices.
    let subscribers: [Int]
  }

  struct Key: Codable, Sendable {
    let kid: String
    let teamID: String
    let app: UInt32
    let publicKeyPEM: String
    let privateKeyPEM: String?
    let scope: APNsKeyScope
    let topics: [String]
    let environment: APNsEnvironmentScope
    let isRevoked: Bool
  }

  struct SavedDevice: Codable, Sendable {
    let app: UInt32
    let handle: SavedHandle
    let flags: UInt8
    let silentUntil: Int64?
    let expiresAt: Int64?
    let minUrgency: Urgency?
    let former: [SavedHandle]?
    let lastSeq: Int?
    let counters: DeviceLog.Counters?
    let events: [SavedEvent]?
    let waiting: [SavedNotification]?
  }

  struct SavedHandle: Codable, Sendable {
    /// The handle's text.
    let token: String
    /// Of a token of APNs, which has no `service`.
    let environment: APNsEnvironment?
    let kind: APNsKind?
    let service: PushService?
    let keys: SubscriptionKeys?
    /// Of a Baidu device.
    let user: String?
    let state: String?
    let at: Int64?
  }

  struct SavedNotification: Codable, Sendable {
    let id: String
    let receivedAt: Int64
    /// Of APNs, which has no `service`.
    var topic: String?
    var pushType: String?
    var priority: UInt8?
    var expiration: Int64?
    /// Of a broadcast.
    var channelID: String?
    /// The collapse key, of every service.
    var collapseID: String?
    let storableUntil: Int64
    let requestSeq: Int
    let payload: Data
    let heldUntil: Int64?
    var notBefore: Int64?
    /// Of the other services.
    var service: PushService?
    var fields: [Notification.Field]?
    let urgency: Urgency?
    let storeKey: String?
    let shelf: Shelf?
    var isDecrypted: Bool?
    var decryptionFault: String?
  }

  struct SavedEvent: Codable, Sendable {
    let seq: Int
    /// The event's name on the stream.
    let name: String
    var id: String?
    /// For `replaced` the newer message, for a notification the one it replaces.
    var other: String?
    /// For `discarded` the reason, for `state` the word.
    var word: String?
    var notification: SavedNotification?
    var source: Delivery.Source?
    var deliveredAt: Int64?
  }
}
