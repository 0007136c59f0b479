import Foundation
import NotificationHubs
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

  @Test("a preview shows six samples, and says how many more there are")
  func samples() {
    let sample = SendPreview.Sample(
      platform: .apns, registrationID: "r",
      rendering: .init(payload: "{}", bytes: 2, limit: 4096, missing: []))
    let preview = SendPreview(
      examined: 8, devices: 8, shares: [], problems: [],
      samples: Array(repeating: sample, count: 8), estimatedSeconds: nil, devicesPerSecond: nil)
    #expect(SendPreviewText(preview).lines.contains("and 2 more; --json has them all"))
  }

  @Test(
    "progress is what is done, what failed, what waits, the rate and the time left",
    arguments: [
      (1200, 5000, 2, 950, "Processing: 1200 of 5000, 3 failed, 2 retrying, 950/s, 4 s left"),
      (1200, nil, 0, 950, "Processing: 1200 devices, 3 failed, 950/s"),
      (1200, 5000, 0, nil, "Processing: 1200 of 5000, 3 failed"),
      (5000, 5000, 0, 950, "Processing: 5000 of 5000, 3 failed, 950/s"),
    ] as [(Int, Int?, Int, Double?, String)])
  func progress(done: Int, audience: Int?, retrying: Int, rate: Double?, text: String) {
    let progress = NotificationProgress(
      notificationID: "n", state: .processing, audience: audience, done: done, retrying: retrying,
      outcomes: ["Success": done - 3, "BadChannel": 3], startTime: nil, endTime: nil, dueTime: nil)
    #expect(ProgressView.text(progress, rate: rate) == text)
  }
}
