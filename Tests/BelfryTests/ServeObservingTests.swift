import Foundation
import HubTesting
import NotificationHubs
import PushEmulator
import Testing
import Wire

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  @Suite("What belfry serve tells of itself")
  struct ServeObservingTests {
    private static let key = Data(repeating: 77, count: 32).base64EncodedString()
    private static let metricsToken = "token-of-the-metrics"
    private static let payload = "words-for-the-phone"
    private static let unknownHandle = String(repeating: "0", count: 64)

    private struct Ready: Decodable {
      let url: String
      let metricsUrl: String?
    }

    @Test(
      "metrics have a listener and a token, and each event is a line without anything secret",
      arguments: ["json", "text"])
    func story(format: String) async throws {
      let emulator = EmulatorServer(.onFreePorts)
      let addresses = try await emulator.start()
      do {
        try await story(format: format, emulator: emulator, addresses)
      } catch {
        await emulator.stop()
        throw error
      }
      await emulator.stop()
    }

    @Test("metrics tell of every push service that a hub has a credential for")
    func everyService() async throws {
      let (process, up) = try await BelfryProcess.up()
      let (status, text) = try await get(
        up.hub.url + "/metrics", bearer: nil)
      #expect(status == 200)
      for platform in ["apns", "fcmv1", "browser", "wns", "adm", "baidu", "xiaomi"] {
        for name in ["belfry_gateway_connections", "belfry_gateway_streams"] {
          let sample = "\(name){hub=\"\(up.hub.name)\",platform=\"\(platform)\"} 0\n"
          #expect(text.contains(sample), "\(sample)")
        }
        let limit = "belfry_gateway_stream_limit{hub=\"\(up.hub.name)\",platform=\"\(platform)\"}"
        // What browsers name is connected to when the first subscription comes.
        #expect(text.contains(limit) == (platform != "browser"), "\(limit)")
      }
      #expect(try await process.end() == 0)
    }

    private func story(
      format: String, emulator: EmulatorServer, _ addresses: EmulatorAddresses
    ) async throws {
      let app = try emulator.app()
      let tokens = try emulator.makeDevices(app: app, count: 2).map(\.token)
      let scratch = try Scratch()
      let server = try BelfryProcess(
        [
          "serve", "--json", "--config", try configuration(in: scratch, app, addresses),
          "--log-format", format, "--log-level", "debug",
        ], environment: ["BELFRY_METRICS_TOKEN": Self.metricsToken])
      let line = try await server.line { $0.hasPrefix("{") }
      let ready = try JSONDecoder().decode(Ready.self, from: Data(line.utf8))
      try await send(to: ready.url, handles: tokens + [Self.unknownHandle])
      try await checkMetrics(ready)
      #expect(try await server.end() == 0)

      let lines = server.errors.split(separator: "\n").map(String.init)
      var events: Set<String> = []
      for line in lines { events.insert(try event(of: line, format)) }
      #expect(events.isSuperset(of: ["server", "request", "send.accepted", "send.finished"]))
      let secrets =
        tokens
        + [
          Self.unknownHandle, Self.key, Self.metricsToken, Self.payload, "sig=",
          "SharedAccessSignature", "bearer",
        ] + app.p8.split(separator: "\n").map(String.init)
      for secret in secrets {
        let telling = lines.first { $0.range(of: secret, options: .caseInsensitive) != nil }
        #expect(telling == nil)
      }
    }

    private func configuration(
      in scratch: Scratch, _ app: EmulatorServer.App, _ addresses: EmulatorAddresses
    ) throws -> String {
      let keyFile = try scratch.file("AuthKey_\(app.keyID).p8", app.p8)
      let authority = try scratch.file("ca.pem", addresses.authorityPEM)
      return try scratch.file(
        "belfry.json",
        """
        { "data": "data", "port": 0, "metricsPort": 0, "trust": ["\(authority)"],
          "serviceHosts": ["127.0.0.1"],
          "hubs": [ { "name": "news", "policies": [
            { "name": "all", "rights": ["Manage", "Send", "Listen"], "primaryKey": "\(Self.key)" } ],
            "apns": { "keyFile": "\(keyFile)", "teamId": "\(app.teamID)",
              "bundleId": "\(app.bundleID)", "endpoint": "\(addresses.apnsProduction)",
              "otherEndpoint": "none" } } ] }
        """)
    }

    private func send(to url: String, handles: [String]) async throws {
      let client = try client(url, key: Self.key)
      for (number, handle) in handles.enumerated() {
        try await client.createOrReplace(
          Installation(
            installationID: "i\(number)", platform: .apns, pushChannel: .handle(handle),
            tags: ["a"]))
      }
      let stranger = try self.client(
        url, key: Data(repeating: 1, count: 32).base64EncodedString())
      await #expect(throws: NotificationHubError.self) {
        try await stranger.createOrReplace(
          Installation(installationID: "x", platform: .apns, pushChannel: .handle(handles[0])))
      }
      let receipt = try await client.send(
        .apple(#"{"aps":{"alert":"\#(Self.payload)"}}"#), to: "a")
      let id = try #require(receipt.notificationID)
      #expect(try await client.finalTelemetry(of: id).state.isFinal)
    }

    private func client(_ url: String, key: String) throws -> NotificationHubClient {
      NotificationHubClient(
        connectionString: try ConnectionString(
          "Endpoint=\(url)/;SharedAccessKeyName=all;SharedAccessKey=\(key)"), hub: "news")
    }

    private func checkMetrics(_ ready: Ready) async throws {
      let own = try #require(ready.metricsUrl)
      // The counters follow the record that telemetry reads.
      try await withLimit(.seconds(30), "the counters") {
        while try await !get(own, bearer: Self.metricsToken).1.contains(
          "\nbelfry_sends_finished_total 1\n")
        { try await Task.sleep(for: .milliseconds(1)) }
      }
      for (url, token, status) in [
        (own, nil, 401), (own, "another-token-of-it", 401), (own, Self.metricsToken, 200),
        (own + "/x", Self.metricsToken, 404), (ready.url + "/metrics", nil, 401),
        (ready.url + "/metrics", Self.metricsToken, 200),
      ] as [(String, String?, Int)] {
        let (found, text) = try await get(url, bearer: token)
        #expect(found == status, "\(url)")
        guard status == 200 else { continue }
        for sample in [
          #"belfry_gateway_connections{hub="news",platform="apns"} 1"#,
          #"belfry_gateway_streams{hub="news",platform="apns"} 0"#,
          #"belfry_outcomes_total{platform="apns",outcome="Success"} 2"#,
          #"belfry_outcomes_total{platform="apns",outcome="BadChannel"} 1"#,
          "belfry_delivery_seconds_count 3", "belfry_sends_finished_total 1", "belfry_ready 1",
        ] { #expect(text.contains(sample + "\n"), "\(sample)") }
        let limit = try #require(
          text.firstMatch(
            of: /belfry_gateway_stream_limit{hub="news",platform="apns"} ([0-9]+)/))
        #expect(Int(limit.1) ?? 0 > 1)
      }
    }

    private func get(_ url: String, bearer: String?) async throws -> (Int, String) {
      var request = URLRequest(url: try #require(URL(string: url)))
      if let bearer { request.setValue("Bearer \(bearer)", forHTTPHeaderField: "Authorization") }
      let (data, reply) = try await URLSession.shared.data(for: request)
      return (
        (reply as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self)
      )
    }

    /// Checks the form of a line.
    private func event(of line: String, _ format: String) throws -> String {
      if format == "json" {
        let value = try JSONValue.parse(line.utf8)
        #expect(
          ["debug", "info", "warning", "error"].contains(value["level"]?.scalarText ?? ""),
          "\(line)")
        #expect(value["time"]?.scalarText?.hasSuffix("Z") == true, "\(line)")
        return try #require(value["event"]?.scalarText)
      }
      let parts = try #require(
        line.wholeMatch(
          of: /[0-9-]{10}T[0-9:]{8}Z (debug|info|warning|error) ([a-z.]+)(?::.*| .*)?/), "\(line)")
      return String(parts.2)
    }

  }
}
