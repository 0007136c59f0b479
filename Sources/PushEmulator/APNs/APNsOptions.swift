/// How strict the APNs stand-in is, and what of the real service's moods it shows
/// (emulator.md, sections 3 and 4).
package struct APNsOptions: Sendable {
  /// Concurrent streams after the first accepted token, and with a certificate.
  package var maxStreams = 1000
  /// A connection may change its provider token this often, in seconds.
  package var tokenUpdateInterval: Int64 = 20 * 60
  /// Whether a topic must end as its push type demands.
  package var strictSuffix = true
  /// Whether `apns-push-type` must be there.
  package var requirePushType = false
  /// Whether a payload that is no JSON object is refused; otherwise it is accepted and discarded.
  package var rejectBadJSON = false
  /// Waiting notifications per device.
  package var storedPerApp = 1
  /// How long a device that saves power may be kept waiting for a push of priority 5 or 1, seconds.
  package var groupWindow: Int64 = 15 * 60
  /// How long a push without `apns-expiration` is kept, in seconds.
  package var defaultStorage: Int64 = 30 * 86_400
  /// Notifications per second and token; `nil` switches the limit off.
  package var perTokenRate: Double?
  /// Whether a connection with more than 50 BadDeviceToken in 10 s is slowed and ended.
  package var errorPenalty = false
  /// Broadcast channels of one app in one environment.
  package var maxChannels = 10_000
  /// A connection without requests for so long gets GOAWAY, in seconds.
  package var idleTimeout: Int64 = 3600

  package init() {}
}
