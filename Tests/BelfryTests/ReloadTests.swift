import Cryptography
import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("A hang-up")
  struct ReloadTests {
    let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func configure(_ more: String) throws -> String {
      try scratch.file("belfry.json", #"{"data":"data","port":0"# + more + "}")
    }

    @Test("takes up hubs and the log's level, and names what waits for the next start")
    func takesUp() async throws {
      let file = try configure(#","logLevel":"error","hubs":[{"name":"one"}]"#)
      let server = try BelfryProcess(["serve", "--json", "--config", file])
      #expect(try await server.line { $0.contains("hubs") }.contains(#"["one"]"#))
      #expect(server.errors.isEmpty)
      _ = try configure(
        #","logLevel":"info","bodyLimit":4096,"hubs":[{"name":"one"},{"name":"two"}]"#)
      server.signal(SIGHUP)
      let waits = try await server.note { $0.contains("configuration.waits") }
      #expect(waits.hasSuffix("bodyLimit"), "only that: \(waits)")
      #expect(server.errors.contains("read again and in force"))
      let list = try await BelfryProcess.run(["hub", "list", "--data", scratch.path + "/data"])
      #expect(list.output.contains("two"))
      // A request that is refused is told at the level info.
      let url = try String(contentsOfFile: scratch.path + "/data/address", encoding: .utf8)
      let port = try #require(url.firstMatch(of: #/:([0-9]+)\n/#).flatMap { UInt16($0.output.1) })
      _ = try await onThread {
        try RawClient(port: port).exchange("GET /one HTTP/1.1\r\nHost: h\r\n\r\n")
      }
      _ = try await server.note { $0.contains(" info request") }
      #expect(try await server.end() == 0)
    }

    @Test("with a faulty configuration changes nothing, and says what is wrong")
    func refused() async throws {
      let authority = try CertificateAuthority(commonName: "Test")
      let pair = try authority.issueForLocalhost()
      _ = try scratch.file("cert.pem", pair.certificatePEM)
      _ = try scratch.file("key.pem", pair.privateKeyPEM())
      let tls = #","tlsPort":0,"tlsCertificate":"cert.pem","tlsKey":"key.pem""#
      let server = try BelfryProcess(["serve", "--config", configure(tls)])
      _ = try await server.note { $0.contains("serves http://") }
      for (content, fault) in [
        (tls + #","hubs":[{"name":"late"}],"prot":1"#, "unknown key 'prot'"),
        (tls + #","hubs":[{"name":"late","apns":{"keyFile":"no.p8"}}]"#, "no.p8"),
        (
          tls.replacing("key.pem", with: "none.pem") + #","hubs":[{"name":"late"}]"#,
          "none.pem cannot be read"
        ),
      ] {
        _ = try configure(content)
        server.signal(SIGHUP)
        let line = try await server.note {
          $0.contains("configuration.refused") && $0.contains(fault)
        }
        #expect(line.contains("the server goes on as before"))
      }
      let list = try await BelfryProcess.run(["hub", "list", "--data", scratch.path + "/data"])
      #expect(!list.output.contains("late"))
      // Right again, and the pair is read at once.
      _ = try configure(tls + #","hubs":[{"name":"late"}]"#)
      server.signal(SIGHUP)
      _ = try await server.note { $0.contains("takes up the certificate of CN=localhost") }
      _ = try await server.note { $0.contains("read again and in force") }
      #expect(try await server.end() == 0)
    }

    @Test("and start and end are told to the service manager, beside signs of life")
    func notified() async throws {
      let socket = try NotifySocket(scratch.path + "/notify")
      let server = try BelfryProcess(
        ["serve", "--config", configure("")],
        environment: ["NOTIFY_SOCKET": scratch.path + "/notify", "WATCHDOG_USEC": "300000"])
      #expect(try await socket.next(skipping: "EXTEND_TIMEOUT_USEC=") == "READY=1")
      for _ in 1...2 { #expect(try await socket.next() == "WATCHDOG=1") }
      server.signal(SIGHUP)
      #expect(
        try await socket.next(skipping: "WATCHDOG").hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
      #expect(try await socket.next(skipping: "WATCHDOG") == "READY=1")
      server.signal(SIGTERM)
      #expect(try await socket.next(skipping: "WATCHDOG") == "STOPPING=1")
      #expect(try await server.exitCode() == 0)
    }

    @Test("ends what is for development in order, as a terminal that closes wants it")
    func development() async throws {
      let (process, _) = try await BelfryProcess.up()
      process.signal(SIGHUP)
      #expect(try await process.exitCode() == 0)
    }
  }
}
