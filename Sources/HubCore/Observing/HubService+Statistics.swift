package import Foundation
package import NotificationHubs

/// A query for statistics; `nil` means the default.
package struct StatisticsQuery: Hashable, Sendable {
  package var from: Date?
  package var to: Date?
  /// In seconds.
  package var step: Int?

  package init(from: Date? = nil, to: Date? = nil, step: Int? = nil) {
    self.from = from
    self.to = to
    self.step = step
  }

  /// Maximum number of points in one reply.
  package static let limit = 1_500
  /// Maximum length of a step, in seconds: a year.
  package static let longestStep = 366 * 86_400

  /// The requested steps: whole minutes within the last day, whole hours where the step is a
  /// multiple of an hour. The last may be incomplete.
  /// - Throws: 400 with advice on a valid query.
  func span(asOf now: Date) throws(HubFailure) -> StatisticSpan {
    let step = step ?? 60
    guard step > 0, step <= Self.longestStep, step.isMultiple(of: 60) else {
      throw HubFailure(
        status: 400,
        message: "The query parameter step is a multiple of 60 seconds, at most \(Self.longestStep)"
      )
    }
    let period: StatisticPeriod = step.isMultiple(of: 3_600) ? .hour : .minute
    let to = min(to ?? now, now)
    // Clamped to the stored period, so that there is no overflow for any year.
    let from = max(from ?? to.addingTimeInterval(-3_600), StatisticPeriod.hour.limit(asOf: now))
    guard from < to else {
      throw HubFailure(
        status: 400,
        message: "The query parameter from must be before to, and before the present time")
    }
    guard period == .hour || from >= StatisticPeriod.minute.limit(asOf: now) else {
      throw HubFailure(
        status: 400,
        message: "Minutes are kept for a day; for what was before, the query parameter step is a "
          + "multiple of 3600")
    }
    let first = Int64((from.timeIntervalSince1970 / Double(period.length)).rounded(.down))
    let end = Int64((to.timeIntervalSince1970 / Double(period.length)).rounded(.up))
    let length = Int64(step / period.length)
    let count = Int((end - first + length - 1) / length)
    guard count <= Self.limit else {
      throw HubFailure(
        status: 400,
        message:
          "That is \(count) points, and \(Self.limit) are the most of one answer; take a longer "
          + "step, or from and to that are closer together")
    }
    return StatisticSpan(period: period, first: first, step: length, count: count)
  }
}

extension HubService {
  /// The statistics of a hub over time.
  /// - Throws: 400 for an invalid query.
  package func statistics(
    hub: Hub, _ query: StatisticsQuery
  ) async throws(HubFailure) -> HubStatistics {
    let span = try query.span(asOf: clock.now())
    let points = try await answering { try await store.statistics(span, hub: hub.id) }
    let seconds = Int(span.step) * span.period.length
    func time(_ index: Int) -> Date {
      Date(timeIntervalSince1970: Double(Int(span.first) * span.period.length + index * seconds))
    }
    return HubStatistics(
      from: time(0), to: time(span.count), step: seconds,
      points: points.enumerated().map { HubStatistics.Point($1, at: time($0)) })
  }
}

extension HubStatistics.Point {
  fileprivate init(_ point: StatisticPoint, at time: Date) {
    self.init(time: time, accepted: point.accepted)
    for (key, count) in point.outcomes {
      switch key.outcome.inExtendedTelemetry {
      case .success: delivered[key.platform.rawValue, default: 0] += count
      case .skipped: break
      case let outcome:
        failed[key.platform.rawValue, default: [:]][outcome.name, default: 0] += count
      }
    }
    for (platform, count) in point.registrations { registrations[platform.rawValue] = count }
  }
}
