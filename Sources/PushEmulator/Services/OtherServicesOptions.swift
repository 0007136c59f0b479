/// How ADM, Baidu and Xiaomi are played (emulator.md, section 8). Rates are messages per second;
/// `nil` switches a limit off.
package struct OtherServicesOptions: Sendable {
  /// Seconds that an access token of ADM is good for.
  package var admTokenLifetime: Int64 = 3600
  /// Per client.
  package var admRate: Double?
  /// Per app.
  package var baiduRate: Double?
  /// Per app.
  package var xiaomiRate: Double?
  /// Messages to devices that an app of Xiaomi may send between two midnights in China.
  package var xiaomiDailyQuota: Int?

  package init() {}
}

extension Shelf {
  /// Where messages wait at services that say nothing of a limit.
  static let wide = Shelf(number: 0, limit: 100, overflow: .dropsOldest)
}
