import Foundation
import Testing

@testable import belfry

@Suite("Telemetry as people read it")
struct ShownTelemetryTests {
  @Test(
    "a delivery never seems to take no time",
    arguments: [
      (0, "less than 1 ms"), (0.0004, "less than 1 ms"), (-1, "less than 1 ms"),
      (0.001, "0.001 s"), (1.5, "1.500 s"),
    ] as [(TimeInterval, String)])
  func duration(seconds: TimeInterval, text: String) {
    #expect(ShownTelemetry.duration(seconds) == text)
  }
}
