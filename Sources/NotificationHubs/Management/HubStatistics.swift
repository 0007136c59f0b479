public import Foundation
import Wire

/// The counts of a hub over time: Belfry's reply to `GET /{hub}/statistics`.
public struct HubStatistics: Hashable, Sendable {
  /// The counts of one step. Platforms are named as in an installation, such as `apns`; those newer
  /// than this build are preserved.
  public struct Point: Hashable, Sendable {
    /// The start of the step.
    public var time: Date
    /// The number of notifications that the hub accepted.
    public var accepted: Int
    /// The number of targets whose push service accepted a notification, by platform.
    public var delivered: [String: Int]
    /// The number of targets that were not reached, by platform and telemetry outcome.
    public var failed: [String: [String: Int]]
    /// The number of registrations at the end of the step, by platform.
    public var registrations: [String: Int]

    /// Creates the counts of one step.
    public init(
      time: Date, accepted: Int = 0, delivered: [String: Int] = [:],
      failed: [String: [String: Int]] = [:], registrations: [String: Int] = [:]
    ) {
      self.time = time
      self.accepted = accepted
      self.delivered = delivered
      self.failed = failed
      self.registrations = registrations
    }
  }

  /// The start of the first step.
  public var from: Date
  /// The end of the last step.
  public var to: Date
  /// The length of a step in seconds.
  public var step: Int
  /// The steps in order, including those without activity.
  public var points: [Point]

  /// Creates statistics.
  public init(from: Date, to: Date, step: Int, points: [Point]) {
    self.from = from
    self.to = to
    self.step = step
    self.points = points
  }

  /// The number of notifications that the hub accepted in all steps.
  public var accepted: Int { points.reduce(0) { $0 + $1.accepted } }
  /// The number of targets reached in all steps, by platform.
  public var delivered: [String: Int] {
    points.reduce(into: [:]) { $0.merge($1.delivered, uniquingKeysWith: +) }
  }
  /// The number of targets not reached in all steps, by platform and outcome.
  public var failed: [String: [String: Int]] {
    points.reduce(into: [:]) { sum, point in
      sum.merge(point.failed) { $0.merging($1, uniquingKeysWith: +) }
    }
  }
}

extension HubStatistics {
  package enum Parameter {
    package static let from = "from"
    package static let to = "to"
    package static let step = "step"
  }

  static func items(from: Date?, to: Date?, step: Int?) -> [URLQueryItem] {
    .given([
      (Parameter.from, from.map(WireDate.milliseconds)),
      (Parameter.to, to.map(WireDate.milliseconds)), (Parameter.step, step.map(String.init)),
    ])
  }

  package var json: [UInt8] {
    JSONWriter.object(capacity: 160 * (points.count + 1)) { writer in
      writer.member("from", from)
      writer.member("to", to)
      writer.member("step", step)
      writer.objects("points", points) { writer, point in
        writer.member("time", point.time)
        writer.member("accepted", point.accepted)
        writer.counts("delivered", point.delivered)
        writer.object("failed") { writer in
          for (platform, outcomes) in point.failed.sorted(by: { $0.key < $1.key }) {
            writer.counts(platform, outcomes)
          }
        }
        writer.counts("registrations", point.registrations)
      }
    }
  }

  /// Decodes the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let from = root.date(Parameter.from), let to = root.date(Parameter.to),
      let step = root.count(Parameter.step), let points = root.array("points")
    else { throw WireFormatError("The reply holds no statistics.") }
    self.init(from: from, to: to, step: step, points: [])
    for item in points {
      guard let time = item.date("time") else { continue }
      var point = Point(
        time: time, accepted: item.count("accepted") ?? 0, delivered: item.counts("delivered"),
        registrations: item.counts("registrations"))
      if let failed = item["failed"], case .object(let members) = failed {
        for member in members { point.failed[member.name] = failed.counts(member.name) }
      }
      self.points.append(point)
    }
  }
}
