/// How strict the WNS stand-in is (emulator.md, section 6).
package struct WNSOptions: Sendable {
  /// Whether XML that is not well-formed, or has another root than its type, is refused; otherwise
  /// it is taken and dropped.
  package var strictXML = false
  /// Seconds that an access token of a Microsoft account is good for.
  package var liveTokenLifetime: Int64 = 86_400
  /// And one of Microsoft Entra.
  package var entraTokenLifetime: Int64 = 3599
  /// Whether `expires_in` comes as text, to test lenient readers.
  package var expiresInAsString = false
  /// Whether a tile keeps five notifications, told apart by their tags, in the place of one.
  package var tileQueue = false
  /// Notifications per second and app; `nil` switches the limit off.
  package var appRate: Double?
  /// And per channel.
  package var channelRate: Double?

  package init() {}
}
