/// How strict the FCM stand-in is (emulator.md, section 5).
package struct FCMOptions: Sendable {
  /// Seconds that an assertion's `iat` may lie ahead of the clock.
  package var oauthSkew: Int64 = 300
  /// What `aud` of an assertion may be beside the stand-in's own token URLs.
  package var tokenAudiences = ["https://oauth2.googleapis.com/token"]
  /// Seconds that an access token is good for.
  package var tokenLifetime: Int64 = 3599
  /// Whether a device may have 240 messages a minute and 5000 an hour only.
  package var perDeviceRate = false
  /// Whether a device may have 20 collapsible messages at once and one in 3 minutes after.
  package var collapsibleRate = false
  /// Messages per minute and project; `nil` switches the limit off. The real one is 600 000.
  package var projectRate: Double?

  package init() {}
}
