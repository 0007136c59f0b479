/// How strict the Web Push stand-in is, and whose answers it gives (emulator.md, section 7).
package struct WebPushOptions: Sendable {
  /// Whose error bodies and codes, where the app does not say.
  package var flavor = WebPushFlavor.rfc
  /// Whether `sub` is required and must have no blanks, as Apple and Mozilla demand.
  package var vendorStrict = false
  /// Whether `Prefer: respond-async` gets a receipt.
  package var receipts = false
  /// Seconds that a message is kept at most.
  package var ttlCap: Int64 = 2_419_200
  /// Messages per second and subscription; `nil` switches the limit off.
  package var perSubscriptionRate: Double?
  /// Origins that `aud` may name beside the stand-in's own.
  package var audiences: [String] = []

  package init() {}
}

/// Whose error bodies and codes the stand-in gives (web-push.md, section 5).
package enum WebPushFlavor: String, CaseIterable, Sendable, Codable {
  case rfc, mozilla, google, apple
}
