import Foundation
import HTTPServer
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import belfry

@Suite("The picture of belfry top")
struct TopFrameTests {
  private static let start = Date(timeIntervalSince1970: 1_893_456_000)

  /// A server with two hubs, one of whose names is hostile, `seconds` after its start.
  private func sample(_ seconds: Double, delivered: Int = 0, dead: Int = 0) -> TopSample {
    let metrics = """
      # HELP belfry_build_info The version that runs.
      belfry_build_info{version="0.1.0"} 1
      belfry_process_start_time_seconds \(Self.start.timeIntervalSince1970)
      belfry_process_resident_memory_bytes 5.2e7
      belfry_sends_accepted_total{kind="audience"} \(seconds / 2)
      belfry_sends_accepted_total{kind="direct"} 1
      belfry_outcomes_total{platform="apns",outcome="Success"} \(delivered)
      belfry_outcomes_total{platform="apns",outcome="BadChannel"} \(dead)
      belfry_notifications_unfinished 1
      belfry_targets_in_memory 123456
      belfry_retries_waiting 7
      belfry_lane_waiting{hub="news",platform="apns"} 12
      belfry_lane_waiting{hub="通知通知通知通知通知通知\u{1B}[2J\\n\\"x\\"",platform="fcmv1"} 3
      belfry_lane_in_flight{hub="news",platform="apns"} 400
      belfry_lane_resting{hub="news",platform="apns"} 1
      belfry_gateway_connections{hub="news",platform="apns"} 2
      belfry_gateway_streams{hub="news",platform="apns"} 400
      belfry_gateway_stream_limit{hub="news",platform="apns"} 2000
      belfry_node_silence_seconds{node="1",name="db\u{202E}1",address="http://a:1"} 1
      belfry_node_silence_seconds{node="2",name="db2",address=""} 130
      nonsense{
      belfry_lane_waiting{hub="half 3
      """
    let progress = NotificationProgress(
      notificationID: "2c57a1b2-0000-0000-0000-000000000000", state: .processing, audience: 5000,
      done: delivered, retrying: 2, outcomes: ["Success": delivered], startTime: nil, endTime: nil,
      dueTime: nil)
    return TopSample(
      address: "http://127.0.0.1:8080", time: Self.start.addingTimeInterval(seconds),
      metrics: ServerMetrics(metrics), status: "ready",
      findings: [("push-service-resting", "apns \u{1B}]0;owned\u{07} does not answer")],
      broadcasts: [.init(hub: "news", progress: progress)])
  }

  private func text(_ frame: TopFrame, _ width: Int) -> String {
    frame.lines(width: width).map(\.text).joined(separator: "\n")
  }

  @Test("fits into any width, and no name moves the cursor", arguments: [1, 20, 60, 80, 100, 200])
  func widths(width: Int) {
    let frame = TopFrame(
      sample: sample(4000, delivered: 2500, dead: 3), previous: sample(3998, delivered: 600))
    for line in frame.lines(width: width) {
      #expect(line.text.columnCount <= max(width, 20), "\(line.text)")
      #expect(line.text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x202E })
    }
  }

  @Test("tells rates, lanes, failures, what is under way, warnings and nodes")
  func contents() {
    let frame = TopFrame(
      sample: sample(4000, delivered: 2500, dead: 3), previous: sample(3998, delivered: 600))
    let wide = text(frame, 120)
    for words in [
      "belfry 0.1.0 at http://127.0.0.1:8080  ready  up 1 h 6 min  52 MB",
      "accepted 0.5/s   delivered 950/s   failed 1.5/s", "devices in hand 123k   retries 7",
      "400/2000  rests", "apns BadChannel", "[##########          ]",
      "Processing: 2500 of 5000, 2 retrying, 950/s, 3 s left",
      "push-service-resting: apns ?]0;owned? does not answer", "db?1", "silent for 2 min",
    ] { #expect(wide.contains(words), "\(words) in\n\(wide)") }
    let narrow = text(frame, 60)
    #expect(!narrow.contains("400/2000") && narrow.contains("rests"), "\(narrow)")
    #expect(narrow.contains("2c57a1b2  news  Processing: 2500 of 5000"), "\(narrow)")
  }

  @Test("says the same as one JSON object, without what is not known")
  func json() throws {
    func object(_ previous: TopSample?) throws -> [String: Any] {
      let frame = TopFrame(sample: sample(4000, delivered: 2500, dead: 3), previous: previous)
      let data = try JSONEncoder().encode(frame.report)
      return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }
    let report = try object(sample(3998, delivered: 600))
    #expect(report["status"] as? String == "ready")
    #expect(report["deliveredPerSecond"] as? Double == 950)
    #expect(report["upSeconds"] as? Double == 4000)
    let lanes = try #require(report["lanes"] as? [[String: Any]])
    let news = try #require(lanes.first { $0["hub"] as? String == "news" })
    #expect(news["state"] as? String == "rests" && news["streamLimit"] as? Int == 2000)
    let failures = try #require(report["failures"] as? [[String: Any]])
    #expect(failures.map { $0["outcome"] as? String } == ["BadChannel"])
    let underWay = try #require(report["underWay"] as? [[String: Any]])
    #expect(underWay.first?["done"] as? Int == 2500)
    #expect((report["nodes"] as? [[String: Any]])?.count == 2)
    #expect(try object(nil)["deliveredPerSecond"] == nil)
  }

  @Test("without a look before has no rates, and of one hub shows that alone")
  func one() {
    let frame = TopFrame(sample: sample(10, delivered: 5), previous: nil, hub: "other")
    let shown = text(frame, 100)
    #expect(shown.contains("accepted -   delivered -   failed -"))
    #expect(!shown.contains("news") && !shown.contains("LANES\n"))
  }

  @Test(
    "text is cut where a terminal's columns end",
    arguments: [
      ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("通知", 4, "通知"), ("通知通", 5, "通知…"),
      ("通知通", 4, "通…"), ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
      ("👩‍👩‍👧x", 3, "👩‍👩‍👧x"), ("", 0, ""),
    ])
  func cut(text: String, width: Int, wanted: String) {
    #expect(text.cut(to: width) == wanted)
    #expect(text.cut(to: width, padded: true).columnCount == width)
  }

  @Test("metrics come as they were written, and what is none is passed over")
  func metrics() {
    let found = sample(0).metrics
    let hub = "通知通知通知通知通知通知\u{1B}[2J\n\"x\""
    #expect(found["belfry_lane_waiting"].map(\.labels["hub"]) == ["news", hub])
    #expect(found.value("belfry_sends_accepted_total") == 1)
    #expect(found["nonsense"].isEmpty && found["half"].isEmpty)
  }
}

extension CommandLineSuite {
  @Suite("belfry top")
  struct TopTests {
    @Test("prints one picture of a server at work, and says which key it wants")
    func once() async throws {
      let (server, up) = try await BelfryProcess.up()
      let phone = try await Control(base: up.emulator.control).phones(1)[0]
      try await up.client().createOrReplace(
        Installation(
          installationID: "i-1", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"]))
      _ = try await BelfryProcess.run([
        "send", "--apns", #"{"aps":{"alert":"hi"}}"#, "--tags", "a", "--wait", "--data", up.data,
      ])
      let top = ["top", "--once", "--interval", "1"]
      for words in [
        ["--data", up.data], ["--connection", up.hub.namespaceConnectionString],
        ["--data", up.data, "--hub", up.hub.name],
      ] {
        let (code, output, errors) = try await BelfryProcess.run(
          top + words, environment: ["COLUMNS": "90"])
        #expect(code == 0, "\(errors)")
        #expect(output.hasPrefix("belfry 0.1.0 at http"), "\(output)")
        #expect(output.contains("LANES") && output.contains("apns"), "\(output)")
        #expect(!output.contains("\u{1B}"))
      }
      // Without a terminal it does not go on, and no picture is half a picture.
      let missing = try await BelfryProcess.run(top + ["--data", up.data, "--hub", "none"])
      #expect(missing.code == 1 && missing.output.isEmpty, "\(missing)")
      #expect(
        missing.errors.contains("there is no hub named 'none'; there are: \(up.hub.name)"),
        "\(missing.errors)")
      #expect(try await server.end() == 0)
      let away = try await BelfryProcess.run(
        top + ["--connection", up.hub.namespaceConnectionString])
      #expect(away.code == 69 && away.errors.contains("does not answer"), "\(away.errors)")
    }

    @Test("shows no token to what has the port of a server that was killed")
    func stale() async throws {
      let scratch = try Scratch()
      let made = try await BelfryProcess.run(["hub", "create", "news", "--data", scratch.path])
      #expect(made.code == 0, "\(made)")
      let requests = Mutex(0)
      let other = try HTTPListener(
        HTTPConfiguration(),
        handler: ClosureHandler { _ in
          requests.withLock { $0 += 1 }
          return HTTPResponse(HTTPStatus(rawValue: 200), text: "")
        })
      let address = "http://127.0.0.1:\(other.port)"
      try DataDirectory(path: scratch.path).publish(address: address)
      let run = try await BelfryProcess.run(["top", "--once", "--data", scratch.path])
      #expect(run.code == 69 && run.errors.contains("no server runs on"), "\(run)")
      // Nor while the next one starts: the note is gone before that has opened anything.
      try DataDirectory(path: scratch.path).setMoved("to elsewhere")
      let serve = try await BelfryProcess.run(["serve", "--port", "0", "--data", scratch.path])
      #expect(serve.code == 64 && serve.errors.contains("was moved to elsewhere"), "\(serve)")
      #expect(DataDirectory(path: scratch.path).address == nil)
      await other.stop(within: .zero)
      #expect(requests.withLock(\.self) == 0)
    }

    @Test("of a server with guarded metrics wants a key of the namespace")
    func guarded() async throws {
      let scratch = try Scratch()
      let data = scratch.path + "/data"
      let server = try BelfryProcess(["serve", "--port", "0", "--data", data])
      _ = try await server.note { $0.contains("serves http") }
      let made = try await BelfryProcess.run([
        "hub", "create", "news", "--data", data, "--json",
      ])
      #expect(made.code == 0, "\(made.errors)")
      let good = try await BelfryProcess.run(["top", "--interval", "1", "--data", data])
      #expect(good.code == 0 && good.output.contains("ready"), "\(good.errors)")
      let address = try String(contentsOfFile: data + "/address", encoding: .utf8)
      let port = try #require(address.firstMatch(of: #/:([0-9]+)\n/#)?.output.1)
      let bad = try await BelfryProcess.run([
        "top", "--once", "--connection",
        "Endpoint=sb://127.0.0.1:\(port)/;SharedAccessKeyName=x;SharedAccessKey=eA==",
      ])
      #expect(bad.code == 1 && bad.errors.contains("RootManageSharedAccessKey"), "\(bad.errors)")
      #expect(try await server.end() == 0)
    }
  }
}
