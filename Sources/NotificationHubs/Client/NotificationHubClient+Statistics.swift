public import Foundation
import Wire

extension NotificationHubClient {
  /// Returns time series of a hub: notifications accepted, deliveries succeeded and failed,
  /// registrations. Belfry only; needs the Send right.
  ///
  /// ```swift
  /// let day = try await client.statistics(from: .now - 86_400, step: 900)
  /// ```
  /// - Parameters:
  ///   - from: `nil` for an hour before `to`.
  ///   - to: `nil` for now.
  ///   - step: The length of a step in seconds, a multiple of 60, or of 3600 for times more than a
  ///     day ago. The hub rejects more than 1500 steps.
  public func statistics(
    from: Date? = nil, to: Date? = nil, step: Int? = nil
  ) async throws -> HubStatistics {
    let reply = try await perform(
      .getStatistics, query: HubStatistics.items(from: from, to: to, step: step))
    return try reply.read { (body) throws(WireFormatError) in try HubStatistics(json: body) }
  }
}
