import Foundation
import HubTesting
import NotificationHubs
import Testing
import Wire

extension CommandLineSuite {
  @Suite("Devices that a push service calls dead, from the command line")
  struct DeadHandleTests {
    @Test("a service that refuses everything empties no hub, and what has gone is brought back")
    func story() async throws {
      let (process, up) = try await BelfryProcess.up()
      let control = Control(base: up.emulator.control)
      let client = try up.client()
      let phones = try await control.phones(30)
      for (number, phone) in phones.enumerated() {
        try await client.createOrReplace(
          Installation(
            installationID: "i-\(number)", platform: .apns, pushChannel: .handle(phone.token)))
      }
      func belfry(_ words: [String]) async throws -> String {
        let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
        let (code, output, errors) = try await BelfryProcess.run(words + access)
        // A send of which nothing arrived ends with 1.
        #expect(code == 0 || words[0] == "notification" && code == 1, "\(words): \(errors)")
        return output
      }
      func broadcast() async throws -> String {
        let sent = try await belfry([
          "send", "--broadcast", "--apns", #"{"aps":{"alert":"tea"}}"#, "--json",
        ])
        let id = try JSONValue.parse(sent.utf8)["notificationId"]?.scalarText ?? ""
        return try await belfry(["notification", "watch", id])
      }
      #expect(try await broadcast().contains("Completed: 30"))
      _ = try await control.call(
        "POST", "/v1/faults",
        #"{"pns":"apns","action":{"type":"reply","status":400,"reason":"DeviceTokenNotForTopic"}}"#)
      let wave = try await broadcast()
      #expect(wave.contains("30 failed"), "\(wave)")
      #expect(try await client.count().total == 30)
      let health = try await Control(base: up.hub.url).call("GET", "/health/ready")
      #expect(health.list("warnings").map { $0.text("code") }.contains("dead-handles"))

      let alarm = try await BelfryProcess.run(["credential", "list", "--data", up.data])
      #expect(alarm.output.contains("ALARM: apns calls so many handles dead"), "\(alarm)")

      // The odd one goes, once the share has fallen again.
      _ = try await control.call("DELETE", "/v1/faults")
      for _ in 0..<6 { _ = try await broadcast() }
      _ = try await control.call(
        "POST", "/v1/devices/\(phones[7].id)/unregister", #"{"mode":"unregistered"}"#)
      #expect(try await broadcast().contains("1 failed"))
      let calm = try await BelfryProcess.run(["credential", "list", "--data", up.data])
      #expect(!calm.output.contains("ALARM"), "\(calm)")
      #expect(try await client.count().total == 29)
      let list = try await belfry(["hub", "restore-devices", "--dry-run"])
      #expect(list.contains("ExpiredChannel   1\n"), "\(list)")
      #expect(list.hasSuffix("1 registrations could come back in hub demo\n"), "\(list)")
      let back = try await belfry(["hub", "restore-devices", "--platform", "apns", "--json"])
      #expect(back == #"{"restored":1,"superseded":0,"more":false}"# + "\n")
      #expect(try await client.count().total == 30)
      #expect(try await process.end() == 0)
    }
  }
}
