public import Foundation
import Wire

extension NotificationHubClient {
  /// What has happened in the hub over time: notifications accepted, targets reached and not
  /// reached, registrations. Belfry only; needs the Send right.
  ///
  /// ```swift
  /// let day = try await client.statistics(from: .now - 86_400, step: 900)
  /// ```
  /// - Parameters:
  ///   - from: `nil` for an hour before `to`.
  ///   - to: `nil` for now.
  ///   - step: In seconds, a multiple of 60; of 3600 for what was more than a day ago. The hub
  ///     refuses more than 1500 steps.
  public func statistics(
    from: Date? = nil, to: Date? = nil, step: Int? = nil
  ) async throws -> HubStatistics {
    let reply = try await perform(
      "GET", ["statistics"], query: HubStatistics.items(from: from, to: to, step: step))
    return try reply.read { (body) throws(WireFormatError) in try HubStatistics(json: body) }
  }
}
