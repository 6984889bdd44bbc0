package suite;

import java.security.Principal;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.ClientAuthenticationMethod;
import org.springframework.security.oauth2.core.OAuth2AccessToken;
import org.springframework.security.oauth2.jose.jws.SignatureAlgorithm;
import org.springframework.security.oauth2.server.authorization.InMemoryOAuth2AuthorizationService;
import org.springframework.security.oauth2.server.authorization.OAuth2Authorization;
import org.springframework.security.oauth2.server.authorization.OAuth2AuthorizationService;
import org.springframework.security.oauth2.server.authorization.client.InMemoryRegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClient;
import org.springframework.security.oauth2.server.authorization.client.RegisteredClientRepository;
import org.springframework.security.oauth2.server.authorization.settings.ClientSettings;
import org.springframework.security.oauth2.server.authorization.settings.TokenSettings;
import org.springframework.security.web.SecurityFilterChain;

/** Spring Authorization Server as it comes, with the clients of the suite and a token of a user who signed in. */
@SpringBootApplication
@EnableConfigurationProperties(Server.Suite.class)
public class Server {
  public record Client(String id, String secret, String method, List<String> grants, String jwks, String subject) {}

  @ConfigurationProperties("suite")
  public record Suite(List<Client> clients, Set<String> scopes, String user, String userToken) {}

  public static void main(String[] words) {
    SpringApplication.run(Server.class, words);
  }

  @Bean
  SecurityFilterChain endpoints(HttpSecurity http) throws Exception {
    return http.oauth2AuthorizationServer(
            server -> server.clientRegistrationEndpoint(endpoint -> endpoint.openRegistrationAllowed(true)))
        .authorizeHttpRequests(all -> all.requestMatchers("/oauth2/register").permitAll().anyRequest().authenticated())
        .build();
  }

  @Bean
  RegisteredClientRepository clients(Suite suite) {
    return new InMemoryRegisteredClientRepository(suite.clients().stream().map(one -> {
      var settings = ClientSettings.builder();
      if (one.jwks() != null)
        settings.jwkSetUrl(one.jwks()).tokenEndpointAuthenticationSigningAlgorithm(SignatureAlgorithm.ES256);
      if (one.subject() != null) settings.x509CertificateSubjectDN(one.subject());
      return RegisteredClient.withId(one.id()).clientId(one.id())
          .clientSecret(one.secret() == null ? null : "{noop}" + one.secret())
          .clientAuthenticationMethod(new ClientAuthenticationMethod(one.method()))
          .authorizationGrantTypes(to -> one.grants().forEach(type -> to.add(new AuthorizationGrantType(type))))
          .scopes(to -> to.addAll(suite.scopes()))
          .clientSettings(settings.build())
          .tokenSettings(TokenSettings.builder().x509CertificateBoundAccessTokens(one.subject() != null).build())
          .build();
    }).toList());
  }

  @Bean
  OAuth2AuthorizationService authorizations(RegisteredClientRepository clients, Suite suite) {
    var now = Instant.now();
    var token = new OAuth2AccessToken(
        OAuth2AccessToken.TokenType.BEARER, suite.userToken(), now, now.plusSeconds(3600), suite.scopes());
    return new InMemoryOAuth2AuthorizationService(
        OAuth2Authorization.withRegisteredClient(clients.findByClientId("suite-machine"))
            .principalName(suite.user())
            .authorizationGrantType(AuthorizationGrantType.AUTHORIZATION_CODE)
            .authorizedScopes(suite.scopes())
            .attribute(Principal.class.getName(),
                UsernamePasswordAuthenticationToken.authenticated(suite.user(), null, List.of()))
            .token(token, data -> data.put(
                OAuth2Authorization.Token.CLAIMS_METADATA_NAME, Map.<String, Object>of("sub", suite.user())))
            .build());
  }
}
