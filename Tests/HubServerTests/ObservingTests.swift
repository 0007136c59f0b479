import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Synchronization
import Testing
import Wire

@testable import HubServer

@Suite("Health, metrics and logs")
struct ObservingTests {
  /// What was logged.
  private final class Lines: Sendable {
    private let state = Mutex<[String]>([])
    func add(_ line: String) { state.withLock { $0.append(line) } }
    var all: [String] { state.withLock { $0 } }
  }

  private struct Scene {
    let hub: TestHub
    let api: HubAPI
    let health: HubHealth
    let lines = Lines()

    init(readers: HubObserver.Readers, store: (any HubStore)? = nil) async throws {
      hub = try await TestHub(store: store)
      health = HubHealth(
        store: hub.store, dispatcher: hub.service.dispatcher, gateways: nil, clock: .system,
        machine: .system)
      let page = MetricsPage(service: hub.service, health: health, version: "1.\"2\"\\\n3")
      api = HubAPI(
        service: hub.service,
        observer: HubObserver(
          log: HubLog(
            level: .debug, format: .json, now: HubClock.system.now,
            write: { [lines] in lines.add($0) }),
          health: health, metrics: page, readers: readers))
    }

    func get(_ path: String, _ authorization: String? = nil) async -> HTTPResponse {
      var headers: HTTPHeaders = ["Host": TestHub.host]
      if let authorization { headers["Authorization"] = authorization }
      return await api.respond(
        to: HTTPRequest(method: .get, target: HTTPTarget(path), headers: headers, body: []))
    }
  }

  @Test("a server is ready once delivery has started, and not any more when it stops")
  func readiness() async throws {
    let scene = try await Scene(readers: .everybody)
    #expect(await scene.get("/health/live").status == .ok)
    let early = await scene.get("/health/ready")
    #expect(early.status == .serviceUnavailable && early.text.contains("not-started"))
    try await scene.hub.service.dispatcher.start()
    let ready = await scene.get("/health/ready")
    #expect(ready.status == .ok)
    #expect(ready.text == #"{"status":"ready","reasons":[],"warnings":[]}"# + "\n")
    scene.health.beginStopping()
    let stopping = await scene.get("/health/ready")
    #expect(stopping.status == .serviceUnavailable && stopping.text.contains("stopping"))
    #expect(await scene.get("/health/live").status == .ok)
  }

  @Test(
    "a store that cannot write makes the server unready, and says why",
    arguments: [
      (StoreError.diskFull, "store-read-only"), (.locked, "store-read-only"),
      (.corrupt("a page"), "store-unavailable"),
    ])
  func storeTrouble(error: StoreError, code: String) async throws {
    let hook = StoreHook()
    let scene = try await Scene(
      readers: .everybody, store: try await temporaryStore(hook))
    try await scene.hub.service.dispatcher.start()
    hook.fail(with: error)
    let reply = await scene.get("/health/ready")
    #expect(reply.status == .serviceUnavailable && reply.text.contains(code))
    hook.fail(with: nil)
    #expect(await scene.get("/health/ready").status == .ok)
  }

  @Test("metrics are for those who may: a namespace's Manage token, the bearer token, or all")
  func metricsAccess() async throws {
    let root = TestHub.token(
      resource: "https://\(TestHub.host)", name: "RootManageSharedAccessKey", key: TestHub.rootKey)
    let hubs = TestHub.token()
    for (readers, header, status) in [
      (HubObserver.Readers.everybody, String?.none, HTTPStatus.ok), (.nobodyElse, nil, 401),
      (.nobodyElse, "Bearer x", 401), (.nobodyElse, hubs, 401), (.bearer("secret"), nil, 401),
      (.bearer("secret"), "Bearer wrong!", 401), (.bearer("secret"), "Bearer secre", 401),
      (.bearer("secret"), "bearer secret", .ok),
    ] {
      let scene = try await Scene(readers: readers)
      let reply = await scene.get("/metrics", header)
      #expect(reply.status == status, "\(readers) \(header ?? "nothing")")
    }
    // The scene's clock is that of the tests' token.
    let scene = try await Scene(readers: .nobodyElse)
    #expect(await scene.get("/metrics", root).status == .ok)
  }

  @Test(
    "a write for whose key too much waits is 429 with Retry-After, and counted",
    arguments: TestedEngine.installed)
  func tooMuchWaits(engine: TestedEngine) async throws {
    // Nothing may wait: each request of a key is refused, on its way to the store.
    var limits = JobLimits()
    (limits.caller, limits.reserved) = (JobLimits.Amount(), 0)
    let scene = try await Scene(
      readers: .everybody, store: try await temporaryStore(on: engine, limits: limits))
    let device = #"{"platform":"apns","pushChannel":"\#(String(repeating: "ab", count: 32))"}"#
    for (method, path, headers, body) in [
      (HTTPMethod.put, "/installations/i", [:] as HTTPHeaders, device),
      (.delete, "/installations/i", [:], ""), (.post, "/registrationids", [:], ""),
      (.post, "/messages", ["ServiceBusNotification-Format": "template"], "{}"),
    ] {
      let reply = await scene.hub.send(
        method, "/hub1\(path)?api-version=2020-06", headers: headers, body: body)
      #expect(reply.status == 429, "\(method) \(path)")
      #expect(reply.headers["Retry-After"] == "2")
      #expect(reply.message?.hasPrefix("TooManyRequests: ") == true, "\(reply.text)")
    }
    let read = await scene.hub.send(.get, "/hub1/installations/i?api-version=2020-06")
    #expect(read.status == .notFound, "who reads is not refused")
    let page = await scene.get("/metrics").text
    #expect(page.contains("\nbelfry_store_refused_total{hub=\"hub1\"} 4\n"), "\(page)")
    #expect(page.contains("\nbelfry_store_waiting 0\n"))
    #expect(page.contains("\nbelfry_store_dropped_total 0\n"))
  }

  @Test("the metrics page keeps the grammar of its format")
  func grammar() async throws {
    let scene = try await Scene(readers: .everybody)
    try await scene.hub.service.dispatcher.start()
    _ = await scene.get("/hub1/messages/none")
    let reply = await scene.get("/metrics")
    #expect(reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
    let names = try PrometheusGrammar.check(reply.text)
    for name in [
      "belfry_build_info", "belfry_http_requests_total", "belfry_sends_accepted_total",
      "belfry_outcomes_total", "belfry_delivery_seconds", "belfry_retries_waiting",
      "belfry_store_commit_seconds", "belfry_process_resident_memory_bytes", "belfry_lane_waiting",
      "belfry_process_start_time_seconds", "belfry_gateway_connections",
      "belfry_credential_expiry_timestamp_seconds", "belfry_ready",
      "belfry_log_lines_dropped_total",
    ] { #expect(names.contains(name), "\(name)") }
    #expect(reply.text.contains(#"belfry_build_info{version="1.\"2\"\\\n3"} 1"#))
    #expect(reply.text.contains(#"belfry_http_requests_total{class="4xx"} 1"#))
  }

  @Test("a request is one line of JSON without anything secret")
  func requestLog() async throws {
    let scene = try await Scene(readers: .everybody)
    _ = await scene.get("/hub1/installations/i1?x=\n", TestHub.token())
    let line = try #require(scene.lines.all.first)
    let value = try JSONValue.parse(Array(line.utf8))
    #expect(value["event"]?.scalarText == "request")
    #expect(value["operation"]?.scalarText == "getInstallation")
    #expect(value["hub"]?.scalarText == "hub1")
    #expect(value["status"]?.scalarText == "404")
    #expect(value["trackingId"]?.scalarText?.count == 36)
    #expect(!line.contains("sig=") && !line.contains("\n"))
  }

  @Test("strangers cannot fill the log: of their refusals few have lines, and no caller loses one")
  func refusedStrangers() async throws {
    let scene = try await Scene(readers: .everybody)
    for _ in 0..<200 { _ = await scene.get("/hub1/installations/i1") }
    #expect(scene.lines.all.count == RefusalLog.Minute.lines.unknown)
    // At the level debug each request of a caller has its line.
    for _ in 0..<200 { _ = await scene.get("/hub1/installations/i1", TestHub.token()) }
    #expect(scene.lines.all.count == RefusalLog.Minute.lines.unknown + 200)
  }

  @Test("a line of text stays one line, whatever it holds")
  func textLog() {
    let lines = Lines()
    let log = HubLog(
      level: .info, now: { Date(timeIntervalSince1970: 0) }, write: { lines.add($0) })
    log(.debug, "hidden")
    log(.warning, "a.b", "two\nlines", [("x", .text("a \"b\"")), ("n", .decimal(1.23456))])
    #expect(
      lines.all == [#"1970-01-01T00:00:00Z warning a.b: two lines x="a \"b\"" n=1.235"#])
  }
}

/// Checks the text format 0.0.4 line by line.
enum PrometheusGrammar {
  struct Fault: Error { let line: String }

  /// - Returns: The names of the metrics.
  static func check(_ text: String) throws -> Set<String> {
    guard text.hasSuffix("\n") else { throw Fault(line: "the last line has no end") }
    var names: Set<String> = []
    var current = ""
    var kind = ""
    for line in text.split(separator: "\n").map(String.init) {
      if let help = line.wholeMatch(of: /# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) .*/) {
        current = String(help.1)
        guard names.insert(current).inserted else { throw Fault(line: "twice: \(line)") }
      } else if let type = line.wholeMatch(of: /# TYPE ([a-zA-Z_:]+) (counter|gauge|histogram)/) {
        guard type.1 == current else { throw Fault(line: line) }
        kind = String(type.2)
      } else {
        let label = #"[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*""#
        let sample = try Regex(
          #"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{\#(label)(?:,\#(label))*\})? "#
            + #"(?:[+-]?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|\+Inf|-Inf|NaN)"#)
        guard let match = line.wholeMatch(of: sample), let name = match[1].substring else {
          throw Fault(line: line)
        }
        let suffixes = kind == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
        guard suffixes.contains(where: { name == current + $0 }) else { throw Fault(line: line) }
      }
    }
    return names
  }
}
