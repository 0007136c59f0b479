import PushDemo
import UIKit

/// The tutorial's screen: user name, password, "Log in" and "Send push".
final class SignInViewController: UIViewController {
  var app: DemoApp?
  private let user = UITextField()
  private let password = UITextField()
  private var alerts = AlertQueue()

  override func viewDidLoad() {
    super.viewDidLoad()
    view.backgroundColor = .systemBackground
    user.placeholder = "User name"
    user.autocapitalizationType = .none
    user.borderStyle = .roundedRect
    password.placeholder = "Password"
    password.isSecureTextEntry = true
    password.borderStyle = .roundedRect
    let stack = UIStackView(arrangedSubviews: [
      user, password, button("Log in") { try await $0.signIn(user: $1, password: $2) },
      button("Send push") { app, _, _ in try await app.sendPush() },
      button("Log out") { app, _, _ in try await app.signOut() },
    ])
    stack.axis = .vertical
    stack.spacing = 12
    stack.translatesAutoresizingMaskIntoConstraints = false
    view.addSubview(stack)
    NSLayoutConstraint.activate([
      stack.leadingAnchor.constraint(equalTo: view.layoutMarginsGuide.leadingAnchor),
      stack.trailingAnchor.constraint(equalTo: view.layoutMarginsGuide.trailingAnchor),
      stack.centerYAnchor.constraint(equalTo: view.centerYAnchor),
    ])
  }

  private func button(
    _ title: String, action: @escaping @Sendable (DemoApp, String, String) async throws -> Void
  ) -> UIButton {
    UIButton(
      type: .system,
      primaryAction: UIAction(title: title) { [weak self] _ in
        guard let self, let app = self.app else { return }
        let (name, word) = (self.user.text ?? "", self.password.text ?? "")
        Task {
          do {
            try await action(app, name, word)
            self.showAlert("\(title): done")
          } catch {
            self.showAlert("\(error)")
          }
        }
      })
  }

  override func viewDidAppear(_ animated: Bool) {
    super.viewDidAppear(animated)
    present(alerts.screen(isThere: true))
  }

  override func viewDidDisappear(_ animated: Bool) {
    super.viewDidDisappear(animated)
    present(alerts.screen(isThere: false))
  }

  func showAlert(_ text: String) { present(alerts.add(text)) }

  private func present(_ text: String?) {
    guard let text else { return }
    let alert = UIAlertController(title: "PushDemo", message: text, preferredStyle: .alert)
    alert.addAction(
      UIAlertAction(title: "OK", style: .default) { [weak self] _ in
        guard let self else { return }
        self.present(self.alerts.closed())
      })
    present(alert, animated: true)
  }
}
