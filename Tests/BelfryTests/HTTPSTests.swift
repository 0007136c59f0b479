import Cryptography
import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("HTTPS")
  struct HTTPSTests {
    /// Asks over TLS, trusting an authority's file; the request is signed with the policy's key.
    private func ask(
      _ method: String, _ path: String, at url: String, trusting file: String,
      with connection: String, headers: String = "", body: String = ""
    ) async throws -> (reply: RawReply, certificate: [UInt8]) {
      let parts = URLComponents(string: url)
      let port = try #require(parts?.port.flatMap { UInt16(exactly: $0) })
      let host = try #require(parts?.host)
      let pem = try String(contentsOfFile: file, encoding: .utf8)
      let access = try ConnectionString(connection)
      let token = SharedAccessSignature(
        resource: url + path, keyName: access.keyName, key: access.key, expiresAt: Date() + 600
      ).text
      let request =
        "\(method) \(path) HTTP/1.1\r\nHost: \(host):\(port)\r\nAuthorization: \(token)\r\n"
        + "\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
      return try await onThread {
        let client = try RawClient(port: port, trusting: pem)
        return (try client.exchange(request), client.peerCertificate)
      }
    }

    @Test("belfry up serves it beside HTTP, with connection strings as Azure's clients read them")
    func up() async throws {
      let (process, line) = try await BelfryProcess.up()
      let hub = line.hub
      #expect(hub.httpsUrl.hasPrefix("https://127.0.0.1:"))
      #expect(hub.ca == line.emulator.ca)
      let port = try #require(hub.httpsUrl.split(separator: ":").last)
      for (secure, plain) in [
        (hub.httpsConnectionStrings.full, hub.connectionStrings.full),
        (hub.httpsConnectionStrings.listen, hub.connectionStrings.listen),
        (hub.httpsNamespaceConnectionString, hub.namespaceConnectionString),
      ] {
        #expect(secure.hasPrefix("Endpoint=sb://127.0.0.1:\(port)/;SharedAccessKeyName="))
        #expect(try ConnectionString(secure).key == ConnectionString(plain).key)
      }
      let put = try await ask(
        "PUT", "/demo/installations/i1?api-version=2020-06", at: hub.httpsUrl, trusting: hub.ca,
        with: hub.httpsConnectionStrings.full,
        body: #"{"installationId":"i1","platform":"apns","pushChannel":"0a1b"}"#)
      #expect(put.reply.status == 200)
      #expect(put.reply.headers["strict-transport-security"] == "max-age=2592000")
      let send = try await ask(
        "POST", "/demo/messages/?api-version=2020-06", at: hub.httpsUrl, trusting: hub.ca,
        with: hub.httpsConnectionStrings.full,
        headers: "ServiceBusNotification-Format: template\r\n",
        body: "{}")
      #expect(send.reply.status == 201)
      #expect(send.reply.headers["location"]?.hasPrefix(hub.httpsUrl + "/demo/messages/") == true)
      #expect(try await line.client().installation("i1").installationID == "i1")
      #expect(try await process.end() == 0)
    }

    @Test("--ca lets the command line in over HTTPS, as with any hub of a private authority")
    func privateAuthority() async throws {
      let (process, line) = try await BelfryProcess.up()
      let words = [
        "send", "--template", "a=b", "--broadcast", "--json", "--connection",
        line.hub.httpsConnectionStrings.full, "--hub", line.hub.name,
      ]
      let sent = try await BelfryProcess.run(words + ["--ca", line.hub.ca])
      #expect(sent.0 == 0, "\(sent.2)")
      #expect(sent.1.contains("notificationId"))
      // Without it the answer says what to give.
      for connection in [
        line.hub.httpsConnectionStrings.full,
        line.hub.httpsConnectionStrings.full.replacing("sb://", with: "https://"),
      ] {
        let refused = try await BelfryProcess.run([
          "audience", "count", "--connection", connection, "--hub", line.hub.name,
        ])
        #expect(refused.code == 69)
        #expect(refused.errors.contains("--ca FILE"), "\(refused.errors)")
      }
      // Another authority is not this server's.
      let scratch = try Scratch()
      let other = try scratch.file(
        "other.pem", try CertificateAuthority(commonName: "Other").certificate.pem)
      let refused = try await BelfryProcess.run(words + ["--ca", other])
      #expect(refused.0 == 69, "\(refused.2)")
      for (file, message) in [
        (scratch.path + "/none", "cannot be read"),
        (try scratch.file("no.pem", "no"), "holds no PEM"),
      ] {
        let wrong = try await BelfryProcess.run(words + ["--ca", file])
        #expect(wrong.0 == 64)
        #expect(wrong.2.contains(message))
      }
      #expect(try await process.end() == 0)
    }

    @Test("belfry serve takes up a new certificate while it runs")
    func renewal() async throws {
      let scratch = try Scratch()
      let authority = try CertificateAuthority(commonName: "Test")
      let ca = try scratch.file("ca.pem", authority.certificate.pem)
      let (old, new) = (try authority.issueForLocalhost(), try authority.issueForLocalhost())
      let certificate = try scratch.file("cert.pem", old.certificatePEM)
      let key = try scratch.file("key.pem", old.privateKeyPEM())
      let server = try BelfryProcess([
        "serve", "--data", scratch.path + "/data", "--port", "0", "--tls-port", "0",
        "--tls-certificate", certificate, "--tls-key", key,
      ])
      let started = try await server.note { $0.contains("serves http://") }
      let url = try #require(started.firstMatch(of: #/https://[^ ]+/#)).output
      let connection = "Endpoint=sb://h/;SharedAccessKeyName=x;SharedAccessKey=AAAA"
      let before = try await ask(
        "GET", "/$health", at: String(url), trusting: ca, with: connection)
      #expect(before.reply.status == 200)
      #expect(before.certificate == old.certificate.der)
      _ = try scratch.file("cert.pem", new.certificatePEM)
      _ = try scratch.file("key.pem", new.privateKeyPEM())
      _ = try await server.note { $0.contains("takes up the certificate") }
      try await withLimit(.seconds(30), "the new certificate to be served") {
        while try await ask("GET", "/$health", at: String(url), trusting: ca, with: connection)
          .certificate != new.certificate.der
        { try await Task.sleep(for: .milliseconds(1)) }
      }
      #expect(try await server.end() == 0)
    }

    @Test("a self-signed server is trusted through tls-ca.pem, over restarts too")
    func selfSigned() async throws {
      let scratch = try Scratch()
      let file = try scratch.file(
        "belfry.json",
        #"{"data":"data","port":0,"tlsPort":0,"tlsSelfSigned":true,"publicNames":["hub.test"]}"#)
      let connection = "Endpoint=sb://h/;SharedAccessKeyName=x;SharedAccessKey=AAAA"
      var first: String?
      for _ in 1...2 {
        let server = try BelfryProcess(["serve", "--config", file])
        // By a name that the certificate has.
        _ = try await server.note { $0.contains("portal at https://hub.test:") }
        let started = try await server.note { $0.contains("serves http://") }
        let url = try #require(started.firstMatch(of: #/https://[^ ]+/#)).output
        let ca = scratch.path + "/data/tls-ca.pem"
        let text = try String(contentsOfFile: ca, encoding: .utf8)
        #expect(first == nil || first == text)
        first = text
        let health = try await ask(
          "GET", "/$health", at: String(url), trusting: ca, with: connection)
        #expect(health.reply.status == 200)
        #expect(try await server.end() == 0)
      }
    }

    @Test(
      "settings that cannot work end with what to do about it",
      arguments: [
        (["--tls-port", "0"], "name tlsCertificate and tlsKey, or set tlsSelfSigned"),
        (["--tls-certificate", "CERT"], "but not 'tlsKey'"),
        (["--tls-key", "KEY"], "but not 'tlsCertificate'"),
        (["--tls-self-signed", "--tls-key", "KEY", "--tls-certificate", "CERT"], "leave it"),
        (["--tls-certificate", "/nowhere.pem", "--tls-key", "KEY"], "/nowhere.pem cannot be read"),
        (
          ["--tls-certificate", "CERT", "--tls-key", "/nowhere.pem"], "/nowhere.pem cannot be read"
        ),
        (["--tls-certificate", "CERT", "--tls-key", "OTHER"], "does not belong to the first"),
        (["--tls-certificate", "KEY", "--tls-key", "KEY"], "holds no PEM block 'CERTIFICATE'"),
        (["--tls-certificate", "CERT", "--tls-key", "CERT"], "is no private key in PEM form"),
      ])
    func badSettings(words: [String], message: String) async throws {
      let scratch = try Scratch()
      let authority = try CertificateAuthority(commonName: "Test")
      let (one, other) = (try authority.issueForLocalhost(), try authority.issueForLocalhost())
      let files = [
        "CERT": try scratch.file("cert.pem", one.certificatePEM),
        "KEY": try scratch.file("key.pem", one.privateKeyPEM()),
        "OTHER": try scratch.file("other.pem", other.privateKeyPEM()),
      ]
      let (code, _, errors) = try await BelfryProcess.run(
        ["serve", "--data", scratch.path + "/data", "--port", "0"] + words.map { files[$0] ?? $0 })
      #expect(code == 64, "\(errors)")
      #expect(errors.contains(message), "\(errors)")
    }
  }
}
